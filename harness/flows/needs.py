"""What recipes need of each other, and what is wrong with it: each mistake at its place.

A need is the name of another recipe of this project, under the same policy, since one plan is
approved under one set of rules; and nobody can begin when all wait for each other.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import InputError, Issue
from harness.flows.recipes import list_recipe_names, read_recipe_bytes
from harness.flows.session import Session
from harness.model.files.recipe_file import Need, read_recipe_needs, read_recipe_policy_name
from harness.model.order import find_circle


@dataclass(frozen=True, slots=True, kw_only=True)
class Needing:
    """A recipe as far as its needs go.

    Attributes:
        policy: name of the policy it is under; empty when the file can't be read that far.
        needs: what it needs, in the order of the file.
    """

    policy: str
    needs: tuple[Need, ...]


def find_needs(session: Session, names: Sequence[str]) -> dict[str, Needing]:
    """Return recipes and all that they need, those named first.

    A file that can't be read needs nothing: reading it as a recipe says why.

    Raises:
        InputError: a name in `names` that is no recipe.
    """
    known = set(list_recipe_names(session))
    found: dict[str, Needing] = {}
    waiting = list(names)
    for name in waiting:
        if name in found:
            continue
        data, file = read_recipe_bytes(session, name)
        try:
            found[name] = Needing(
                policy=read_recipe_policy_name(data, file), needs=read_recipe_needs(data, file)
            )
        except InputError:
            found[name] = Needing(policy="", needs=())
        waiting += [need.name for need in found[name].needs if need.name in known]
    return found


def check_needs(session: Session, found: Mapping[str, Needing]) -> dict[str, tuple[Issue, ...]]:
    """Return what is wrong with the needs of each recipe; only those with mistakes are in it.

    Args:
        session: host and project.
        found: what `find_needs` returned.
    """
    issues: dict[str, list[Issue]] = {}
    for name, needing in found.items():
        for need in needing.needs:
            problem = _problem(session, needing, need, found)
            if problem:
                issues.setdefault(name, []).append(problem)
    edges = {
        name: [need.name for need in needing.needs if need.name in found and need.name != name]
        for name, needing in found.items()
    }
    while circle := find_circle(edges):
        first, second = circle[:2]
        edges[first].remove(second)
        (place,) = (need.where for need in found[first].needs if need.name == second)
        issues.setdefault(first, []).append(
            Issue(
                message=f"needs: a circle: {' -> '.join(circle)}",
                where=place,
                fix="take one of them out: each would wait for the other",
            )
        )
    return {name: tuple(items) for name, items in issues.items()}


def _problem(
    session: Session, needing: Needing, need: Need, found: Mapping[str, Needing]
) -> Issue | None:
    """Tell what is wrong with one need; a recipe that needs itself is its reader's to refuse."""
    other = found.get(need.name)
    if other is None:
        near = difflib.get_close_matches(need.name, list_recipe_names(session), n=1)
        return Issue(
            message=f"needs: {need.name!r:.80} is no recipe of this project",
            where=need.where,
            fix=f"did you mean {near[0]!r}?" if near else "`harness recipe list` shows them",
        )
    if other.policy and needing.policy != other.policy:
        return Issue(
            message=f"needs: {need.name!r:.80} is under the policy {other.policy}, "
            f"this recipe under {needing.policy}",
            where=need.where,
            fix="name one policy in both: a plan is approved under one",
        )
    return None
