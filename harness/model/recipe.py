"""A recipe: what a person wants run, as data.

A recipe's JSON form is what is sealed; the YAML file is only its spelling. The reader of the
file is `harness.model.files.recipe_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.model.limits import Limits

Kind = Literal["build", "test", "experiment"]

KINDS: tuple[Kind, ...] = ("build", "test", "experiment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command: an argv list, never a shell line.

    Attributes:
        name: for people and reports.
        argv: program and arguments; parameters are filled in.
        script: argv[0] is a shell, or an interpreter gets its source inline.
    """

    name: str
    argv: tuple[str, ...]
    script: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file the run is to leave behind as an artifact.

    Attributes:
        name: what `harness` calls the artifact.
        path: one path inside the workspace.
        report: `junit` when the file holds test results, else empty.
    """

    name: str
    path: str
    report: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe, read and checked, parameters filled in.

    Attributes:
        name: the file's stem.
        kind: build, test or experiment.
        description: why it exists, one line.
        image: name of a locked image.
        steps: run in order under one init; the first that fails ends the run.
        include: gitignore-style patterns of the files that enter; empty means all.
        exclude: patterns of files that stay out.
        writable: patterns of the paths whose changes may be imported.
        outputs: artifacts.
        env: environment of every step.
        limits: effective limits, already tightened under the policy.
        parameters: the values chosen, all of them, defaults included.
        workspace: `auto`, `overlay` or `copy`.
        policy: name of the policy file that governs it.
        cell: the matrix cell this is; empty without a matrix.
        needs: names of the recipes that must pass first.
    """

    name: str
    kind: Kind
    description: str
    image: str
    steps: tuple[Step, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    env: Mapping[str, str]
    limits: Limits
    parameters: Mapping[str, str]
    workspace: str = "auto"
    policy: str = "default"
    cell: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """Return the name of its operation: `recipe`, or `recipe:key=value,...` for a cell."""
        cell = ",".join(f"{key}={value}" for key, value in self.cell.items())
        return f"{self.name}:{cell}" if cell else self.name

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members that are sealed."""
        return {
            "name": self.name,
            "kind": self.kind,
            "description": self.description,
            "image": self.image,
            "steps": [
                {"name": step.name, "argv": list(step.argv), "script": step.script}
                for step in self.steps
            ],
            "include": list(self.include),
            "exclude": list(self.exclude),
            "writable": list(self.writable),
            "outputs": [
                {"name": output.name, "path": output.path, "report": output.report}
                for output in self.outputs
            ],
            "env": dict(self.env),
            "parameters": dict(self.parameters),
            "workspace": self.workspace,
        }
