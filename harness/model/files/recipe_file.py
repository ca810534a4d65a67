"""The recipe file: strict YAML in, a `Recipe` out, or every mistake in it.

Rules, beside the shape (`harness.model.files.file_schemas.RECIPE`):
    * A shell or inline interpreter source needs `allow_scripts` of the policy, and takes no
      values inside its source text: those would be code.
    * A recipe with a matrix is read once for each cell, and each must be right.
    * No credentials, host paths, fixed or loader variables (`harness.model.files.recipe_rules`).
    * Limits and workspace can only tighten the policy's.

The policy's name stands in the file, so it is read first (`read_recipe_policy_name`), and then the
whole file under that policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from harness.model.files.fields import child, children, text, texts
from harness.model.files.file_shape import check_name, check_shape
from harness.model.files.limits_file import read_limits
from harness.model.files.mistakes import MAX_ISSUES, START, Mistakes, Place
from harness.model.files.recipe_matrix import Cell, read_cells, read_matrix_keys
from harness.model.files.recipe_outputs import read_outputs
from harness.model.files.recipe_parameters import (
    Parameter,
    choose_values,
    default_values,
    read_parameters,
)
from harness.model.files.recipe_rules import env_name_problem, pattern_problem, value_problem
from harness.model.files.recipe_schema import RECIPE
from harness.model.files.recipe_steps import read_steps
from harness.model.files.references import Substitution
from harness.model.files.schema_parts import NAME_PATTERN
from harness.model.files.strict_yaml import parse_yaml
from harness.model.policy import Policy
from harness.model.recipe import KINDS, Kind, Recipe

_SUMMARY = "recipe is not valid"
_DEFAULT_POLICY = "default"


def read_recipe_policy_name(data: bytes, file: str) -> str:
    """Return the name of the policy that governs a recipe, whatever else is wrong with it.

    Args:
        data: the recipe file's bytes.
        file: its path, for messages.

    Raises:
        InputError: it is no YAML file, or its field `policy` is wrong; with every mistake found.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), RECIPE, mistakes)
    policy = child(root, "policy")
    if root is None or (policy is None and "policy" in root.keys):
        mistakes.stop(_SUMMARY)
    return text(policy, _DEFAULT_POLICY)


class Need(NamedTuple):
    """One entry of `needs`.

    Attributes:
        name: of the recipe that is needed.
        where: `file:line:column`.
    """

    name: str
    where: str


def read_recipe_needs(data: bytes, file: str) -> tuple[Need, ...]:
    """Return what a recipe needs, whatever else is wrong with it.

    Args:
        data: the recipe file's bytes.
        file: its path, for messages.

    Raises:
        InputError: it is no YAML file; with every mistake found.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), RECIPE, mistakes)
    return tuple(Need(name, mistakes.where(place)) for name, place in texts(child(root, "needs")))


def read_recipe_parameters(data: bytes, file: str) -> tuple[Parameter, ...]:
    """Return the parameters that a recipe declares, to show them.

    Args:
        data: the recipe file's bytes.
        file: its path, for messages.

    Raises:
        InputError: every mistake in the file's shape and its parameters.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), RECIPE, mistakes)
    parameters = read_parameters(child(root, "parameters"), mistakes)
    mistakes.stop_if_any(_SUMMARY)
    return tuple(parameters.values())


def read_recipe_cells(
    data: bytes, file: str, *, name: str, policy: Policy, chosen: Mapping[str, str] | None
) -> tuple[Recipe, ...]:
    """Read a recipe under its policy, with the values chosen for this run, once for each cell.

    Args:
        data: the file's bytes.
        file: its path, for messages.
        name: the recipe's name: the file's stem.
        policy: the policy that the file names.
        chosen: values of parameters, by name; None only checks the file: a reference to a
            parameter without a default then stays as it is written.

    Returns:
        One recipe for each cell of the matrix, in the order of the file; exactly one, with an
        empty cell, without a matrix.

    Raises:
        InputError: every mistake, in the file or in the values.
    """
    reader = _Reader(data, file)
    check_name(name, reader.mistakes)
    if chosen is None:
        values = default_values(reader.parameters)
    else:
        values = choose_values(reader.parameters, chosen, reader.mistakes)
    recipes = reader.read(name, values, policy)
    reader.mistakes.stop_if_any(_SUMMARY)
    return recipes


class _Reader:
    """One recipe file being read; mistakes gather, the caller raises them."""

    def __init__(self, data: bytes, file: str) -> None:
        self.mistakes = Mistakes(file)
        self.root = check_shape(parse_yaml(data, self.mistakes), RECIPE, self.mistakes)
        self.parameters = read_parameters(child(self.root, "parameters"), self.mistakes)

    def place(self, field: str) -> Place:
        node = child(self.root, field)
        return START if node is None else node.place

    def read(self, name: str, values: Mapping[str, str], policy: Policy) -> tuple[Recipe, ...]:
        matrix = child(self.root, "matrix")
        known = {"param": tuple(self.parameters), "matrix": read_matrix_keys(matrix)}
        used: dict[str, set[str]] = {space: set() for space in known}
        recipes = []
        for cell in read_cells(matrix, self.mistakes):
            filler = Substitution(
                known=known,
                values={"param": values, "matrix": cell},
                mistakes=self.mistakes,
                used=used,
            )
            recipes.append(self._read_cell(name, cell, values, policy, filler))
            if len(self.mistakes.found) > MAX_ISSUES:
                break  # the other cells would say the same
        self._refuse_unused("parameters", "parameter", "param", known["param"], used)
        self._refuse_unused("matrix", "matrix key", "matrix", known["matrix"], used)
        return tuple(recipes)

    def _read_cell(
        self, name: str, cell: Cell, values: Mapping[str, str], policy: Policy, filler: Substitution
    ) -> Recipe:
        root, mistakes, isolation = self.root, self.mistakes, policy.isolation
        limits = read_limits(
            child(root, "limits"),
            base=isolation.limits,
            above=isolation.limits,
            mistakes=mistakes,
            label="limits",
        )
        kinds: Mapping[str, Kind] = {kind: kind for kind in KINDS}
        return Recipe(
            name=name,
            kind=kinds.get(text(child(root, "kind")), "experiment"),
            description=text(child(root, "description")),
            image=self._image(filler),
            steps=read_steps(
                child(root, "steps"),
                filler,
                allow_scripts=isolation.allow_scripts,
                wall_ms=limits.wall_ms,
            ),
            include=self._patterns("inputs", "include", git_matters=True),
            exclude=self._patterns("inputs", "exclude", git_matters=False),
            writable=self._patterns("writable", git_matters=True),
            outputs=read_outputs(child(root, "outputs"), limits.artifact_bytes, mistakes),
            env=self._env(filler),
            limits=limits,
            parameters=dict(values),
            cell=cell,
            needs=self._needs(name),
            workspace=self._workspace(isolation.workspace),
            policy=self._policy(policy.name),
        )

    def _image(self, filler: Substitution) -> str:
        node = child(self.root, "image")
        if node is None:
            return ""
        name = filler.fill(text(node), node.place, "image")
        if not re.fullmatch(NAME_PATTERN, name):
            self.mistakes.add(node.place, f"image: expected a name like python, got {name!r:.80}")
        return name

    def _needs(self, name: str) -> tuple[str, ...]:
        needs = texts(child(self.root, "needs"))
        for need, place in needs:
            if need == name:
                self.mistakes.add(place, f"needs: {name!r:.80} needs itself", "remove it")
        return tuple(need for need, _ in needs)

    def _patterns(self, *field: str, git_matters: bool) -> tuple[str, ...]:
        label = ".".join(field)
        found: list[str] = []
        for pattern, place in texts(child(self.root, *field)):
            problem = pattern_problem(pattern, git_matters=git_matters)
            if problem:
                self.mistakes.add(place, f"{label}: {problem.message}", problem.fix)
            found.append(pattern)
        return tuple(found)

    def _env(self, filler: Substitution) -> dict[str, str]:
        node = child(self.root, "env")
        found: dict[str, str] = {}
        for name, value in children(node).items():
            problem = env_name_problem(name)
            if node and problem:
                self.mistakes.add(node.keys[name], problem.message, problem.fix)
            filled = filler.fill(text(value), value.place, f"env.{name}")
            problem = value_problem(filled)
            if problem:
                self.mistakes.add(value.place, f"env.{name}: {problem.message}", problem.fix)
            found[name] = filled
        return found

    def _refuse_unused(
        self, field: str, word: str, space: str, names: tuple[str, ...], used: dict[str, set[str]]
    ) -> None:
        node = child(self.root, field)
        for name in names:
            if node and name not in used[space]:
                fix = f"write ${{{space}.{name}}} in a step or in env, or remove it"
                self.mistakes.add(node.keys[name], f"{word} {name!r} is never used", fix)

    def _policy(self, given: str) -> str:
        named = text(child(self.root, "policy"), _DEFAULT_POLICY)
        if named != given:
            self.mistakes.add(self.place("policy"), f"policy: expected {given!r}, got {named!r}")
        return named

    def _workspace(self, above: str) -> str:
        own = text(child(self.root, "workspace"), "auto")
        if own == "auto" or above in ("auto", own):
            return above if own == "auto" else own
        message = f"workspace: expected {above}, as the policy says, got {own}"
        self.mistakes.add(self.place("workspace"), message, "leave it out")
        return above
