"""A recipe: what a person wants run, as data.

A recipe's JSON form is what is sealed; the YAML file is only its spelling. The reader of the
file is `harness.model.files.recipe_file`. What a seal holds is read back here: a member that an
older seal does not have means what it meant before there was one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.model.limits import Limits

Kind = Literal["build", "test", "experiment"]

KINDS: tuple[Kind, ...] = ("build", "test", "experiment")

PASSING: tuple[int, ...] = (0,)
"""The exit codes of a step that count as done, when a recipe names no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command: an argv list, never a shell line.

    Attributes:
        name: for people and reports.
        argv: program and arguments; values are filled in.
        script: argv[0] is a shell, or an interpreter gets its source inline.
        timeout_ms: how long it may take; 0: only the wall clock of the whole operation counts.
        allowed_exits: exit codes that count as done.
    """

    name: str
    argv: tuple[str, ...]
    script: bool = False
    timeout_ms: int = 0
    allowed_exits: tuple[int, ...] = PASSING

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "name": self.name,
            "argv": list(self.argv),
            "script": self.script,
            "timeoutMs": self.timeout_ms,
            "allowedExits": list(self.allowed_exits),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file the run is to leave behind as an artifact.

    Attributes:
        name: what `harness` calls the artifact.
        path: one path inside the workspace.
        report: `junit` when the file holds test results, else empty.
        type: media type (RFC 6838), as declared; empty without one.
        max_bytes: size above which it is not kept and the run fails; 0: no such bound, as in
            seals made before there was one.
    """

    name: str
    path: str
    report: str = ""
    type: str = ""
    max_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "name": self.name,
            "path": self.path,
            "report": self.report,
            "type": self.type,
            "maxBytes": self.max_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe, or one cell of its matrix: read and checked, values filled in.

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
        cell: the values of its matrix, by key in the order of the file; empty without a matrix.
        needs: names of recipes that must pass before; order only, and no part of the seal.
        workspace: `auto`, `overlay` or `copy`.
        policy: name of the policy file that governs it.
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
    cell: Mapping[str, str]
    needs: tuple[str, ...] = ()
    workspace: str = "auto"
    policy: str = "default"

    @property
    def operation(self) -> str:
        """Return the operation's name: `recipe`, or `recipe:key=value,key=value` for a cell."""
        pairs = ",".join(f"{key}={value}" for key, value in self.cell.items())
        return f"{self.name}:{pairs}" if pairs else self.name

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members that are sealed."""
        return {
            "name": self.name,
            "kind": self.kind,
            "description": self.description,
            "image": self.image,
            "steps": [step.to_json() for step in self.steps],
            "include": list(self.include),
            "exclude": list(self.exclude),
            "writable": list(self.writable),
            "outputs": [output.to_json() for output in self.outputs],
            "env": dict(self.env),
            "parameters": dict(self.parameters),
            "cell": dict(self.cell),
            "workspace": self.workspace,
        }


def sealed_steps(recipe: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps that a seal holds, of any version.

    Args:
        recipe: `Seal.recipe`.
    """
    return tuple(
        Step(
            name=step["name"],
            argv=tuple(step["argv"]),
            script=step["script"],
            timeout_ms=step.get("timeoutMs", 0),
            allowed_exits=tuple(step.get("allowedExits", PASSING)),
        )
        for step in recipe["steps"]
    )


def sealed_outputs(recipe: Mapping[str, Any]) -> tuple[Output, ...]:
    """Return the outputs that a seal holds, of any version.

    Args:
        recipe: `Seal.recipe`.
    """
    return tuple(
        Output(
            name=output["name"],
            path=output["path"],
            report=output["report"],
            type=output.get("type", ""),
            max_bytes=output.get("maxBytes", 0),
        )
        for output in recipe["outputs"]
    )
