"""Recipes of a project: find them, read one under its policy, check them all."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, InputError, Issue
from harness.flows.policies import read_policy_named
from harness.flows.session import Session
from harness.model.files.recipe_file import read_recipe, read_recipe_policy_name
from harness.model.files.strict_yaml import MAX_BYTES
from harness.model.policy import Policy
from harness.model.recipe import Recipe
from harness.store.bounded import read_bounded

SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One recipe file and whether it holds.

    Attributes:
        name: of the recipe.
        recipe: as read with default parameters; None when it has mistakes.
        issues: every mistake, in the recipe or the policy it names.
    """

    name: str
    recipe: Recipe | None
    issues: tuple[Issue, ...]


def list_recipe_names(session: Session) -> list[str]:
    """Return the names of the project's recipes, sorted.

    Raises:
        InputError: the recipes folder can't be read.
    """
    folder = session.project.recipes
    try:
        return sorted(
            path.name.removesuffix(SUFFIX)
            for path in folder.iterdir()
            if path.name.endswith(SUFFIX) and path.is_file()
        )
    except OSError as error:
        raise InputError(
            f"recipes folder {folder.name}: {error.strerror}",
            hint="harness.yaml names it; `harness init` writes a starter set",
        ) from error


def read_recipe_named(
    session: Session, name: str, chosen: Mapping[str, str] | None
) -> tuple[Recipe, Policy]:
    """Read one recipe with chosen parameters (None: only to look at it), under its policy.

    Raises:
        InputError: no such recipe, or every mistake in it or its policy.
    """
    data = _read_bytes(session, name)
    file = str(_path_of(session, name).relative_to(session.project.root))
    policy = read_policy_named(session, read_recipe_policy_name(data, file))
    return read_recipe(data, file, name=name, policy=policy, chosen=chosen), policy


def check_recipes(session: Session, names: list[str]) -> list[Checked]:
    """Read each recipe and keep its mistakes, so that all of them are seen at once.

    Raises:
        InputError: a name that is no recipe.
    """
    checked = []
    for name in names:
        _read_bytes(session, name)
        try:
            recipe, _ = read_recipe_named(session, name, None)
        except HarnessError as error:
            issues = error.issues or (Issue(message=error.message, fix=error.hint),)
            checked.append(Checked(name=name, recipe=None, issues=issues))
        else:
            checked.append(Checked(name=name, recipe=recipe, issues=()))
    return checked


def _path_of(session: Session, name: str) -> Path:
    return session.project.recipes / f"{name}{SUFFIX}"


def _read_bytes(session: Session, name: str) -> bytes:
    known = list_recipe_names(session)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise InputError(
            f"recipe: {name!r:.80} is not in {session.project.recipes.name}/",
            hint=f"did you mean {near[0]!r}?" if near else "`harness recipe list` shows them",
        )
    try:
        return read_bounded(_path_of(session, name), MAX_BYTES)
    except OSError as error:
        raise InputError(f"recipe {name}: {error.strerror}") from error
