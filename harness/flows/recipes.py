"""Recipes of a project: find them, read one under its policy, order those of one plan."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import InputError, Issue
from harness.flows.policies import read_policy_named
from harness.flows.session import Session
from harness.model.files.recipe_file import (
    read_recipe_cells,
    read_recipe_parameters,
    read_recipe_policy_name,
)
from harness.model.files.strict_yaml import MAX_BYTES
from harness.model.order import order_recipes
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRecipe:
    """One operation to be planned: a recipe, or one cell of its matrix.

    Attributes:
        recipe: as read, the cell's values filled in.
        policy: the policy it names.
        needs: names of the operations that must pass before it.
    """

    recipe: Recipe
    policy: Policy
    needs: tuple[str, ...]


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


def read_recipes_to_plan(
    session: Session, names: Sequence[str], chosen: Mapping[str, str]
) -> tuple[PlannedRecipe, ...]:
    """Read recipes and all that they need, in the order in which they are to run.

    Args:
        session: host and project.
        names: the recipes' names, one or more, in the order a person gave them.
        chosen: parameter values; each goes to every recipe that declares it.

    Raises:
        InputError: every mistake in any of them, a recipe that is not there, or a circle.
    """
    needs = _needed(session, names)
    ordered = order_recipes(names, needs)
    shares = _share(session, ordered, chosen)
    read = {name: read_recipe_named(session, name, shares[name]) for name in ordered}
    return tuple(
        PlannedRecipe(
            recipe=cell,
            policy=read[name][1],
            needs=tuple(other.operation for need in cell.needs for other in read[need][0]),
        )
        for name in ordered
        for cell in read[name][0]
    )


def _needed(session: Session, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return what each recipe needs, of those named and of all that they need."""
    needs: dict[str, tuple[str, ...]] = {}
    errors: list[InputError] = []
    waiting = list(dict.fromkeys(names))
    for name in waiting:
        try:
            cells, _ = read_recipe_named(session, name, None)
        except InputError as error:
            errors.append(error)
            continue
        needs[name] = cells[0].needs
        waiting += [other for other in needs[name] if other not in waiting]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        issues = (
            error.issues or (Issue(message=error.message, fix=error.hint),) for error in errors
        )
        raise InputError(
            "recipes are not valid", issues=tuple(item for part in issues for item in part)
        )
    return needs


def _share(
    session: Session, names: Sequence[str], chosen: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the chosen values that each recipe declares.

    Raises:
        InputError: no recipe declares one.
    """
    declared = {
        name: [item.name for item in read_recipe_parameters(*read_recipe_bytes(session, name))]
        for name in names
    }
    known = sorted({item for items in declared.values() for item in items})
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise InputError(
            "parameters are not valid",
            issues=tuple(
                Issue(
                    message=f"no recipe of this plan ({', '.join(names)}) has such a parameter",
                    where=f"--param {name:.64}",
                    fix=f"declared: {', '.join(known) or 'none'}",
                )
                for name in unknown
            ),
        )
    return {
        name: {item: chosen[item] for item in items if item in chosen}
        for name, items in declared.items()
    }


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
