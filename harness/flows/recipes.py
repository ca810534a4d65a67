"""Recipes of a project: find them, and read one under its policy."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from harness.errors import InputError
from harness.flows.policies import read_policy_named
from harness.flows.session import Session
from harness.model.files.recipe_file import (
    read_recipe_cells,
    read_recipe_policy_name,
)
from harness.model.files.strict_yaml import MAX_BYTES
from harness.model.policy import Policy
from harness.model.recipe import Recipe
from harness.store.bounded import read_bounded

SUFFIX = ".yaml"


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
) -> tuple[tuple[Recipe, ...], Policy]:
    """Read the cells of one recipe with chosen parameters, under its policy.

    Args:
        session: host and project.
        name: the recipe's name.
        chosen: values of parameters; None only looks at it.

    Raises:
        InputError: no such recipe, or every mistake in it or its policy.
    """
    data, file = read_recipe_bytes(session, name)
    policy = read_policy_named(session, read_recipe_policy_name(data, file))
    return read_recipe_cells(data, file, name=name, policy=policy, chosen=chosen), policy


def read_recipe_bytes(session: Session, name: str) -> tuple[bytes, str]:
    """Return a recipe file's bytes and its path below the project's root, for messages.

    Raises:
        InputError: no such recipe, or it can't be read.
    """
    known = list_recipe_names(session)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise InputError(
            f"recipe: {name!r:.80} is not in {session.project.recipes.name}/",
            hint=f"did you mean {near[0]!r}?" if near else "`harness recipe list` shows them",
        )
    path = session.project.recipes / f"{name}{SUFFIX}"
    file = os.path.relpath(path, session.project.root)
    try:
        return read_bounded(path, MAX_BYTES), file
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
