"""The recipes of one plan: those that were asked for and all that they need, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import InputError, Issue
from harness.flows.needs import check_needs, find_needs
from harness.flows.recipes import read_recipe_bytes, read_recipe_named
from harness.flows.session import Session
from harness.model.files.recipe_file import read_recipe_parameters
from harness.model.order import order_recipes
from harness.model.policy import Policy
from harness.model.recipe import Recipe


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
    if not names:
        raise InputError("recipes: expected one or more names, got none")
    ordered = order_needed(session, names)
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


def order_needed(session: Session, names: Sequence[str]) -> tuple[str, ...]:
    """Return recipes and all that they need, what is needed first.

    Raises:
        InputError: every mistake in any of them, or a name that is no recipe.
    """
    found = find_needs(session, names)
    wrong = check_needs(session, found)
    issues: list[Issue] = []
    for name in found:
        try:
            read_recipe_named(session, name, None)
        except InputError as error:
            issues += error.issues or (Issue(message=error.message, fix=error.hint),)
        issues += wrong.get(name, ())
    if issues:
        count = "1 mistake" if len(issues) == 1 else f"{len(issues)} mistakes"
        raise InputError(f"recipes are not valid: {count}", issues=tuple(dict.fromkeys(issues)))
    return order_recipes(names, {name: [n.name for n in found[name].needs] for name in found})


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
