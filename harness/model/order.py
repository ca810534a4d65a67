"""The order of recipes that need each other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from harness.errors import InputError


def find_circle(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return names of which each needs the next, first and last the same; none without a circle.

    Args:
        needs: what each recipe needs.
    """
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def order_recipes(asked: Sequence[str], needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the asked recipes and all that they need, what is needed first.

    Args:
        asked: names, in the order a person gave them; it is kept where `needs` lets it.
        needs: what each recipe needs, of all that is asked or needed.

    Raises:
        InputError: they need each other in a circle.
    """
    position: dict[str, int] = {}
    waiting = list(dict.fromkeys(asked))
    for name in waiting:
        if name not in position:
            position[name] = len(position)
            waiting += needs[name]
    reached = {name: needs[name] for name in position}
    circle = find_circle(reached)
    if circle:
        raise InputError(
            f"needs: expected an order, got a circle: {' -> '.join(circle)}",
            hint="take one of them out",
        )
    sorter = TopologicalSorter(reached)
    sorter.prepare()
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        sorter.done(*ready)
        ordered += ready
    return tuple(ordered)
