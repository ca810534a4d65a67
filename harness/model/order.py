"""The order of recipes that need each other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from harness.errors import InputError


def order_recipes(asked: Sequence[str], needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the asked recipes and all that they need, what is needed first.

    Args:
        asked: names, in the order a person gave them; it is kept where `needs` lets it.
        needs: what each recipe needs, of all that is asked or needed.

    Raises:
        InputError: they need each other in a circle.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    waiting = list(dict.fromkeys(asked))
    position: dict[str, int] = {}
    for name in waiting:
        if name in position:
            continue
        position[name] = len(position)
        sorter.add(name, *needs[name])
        waiting += needs[name]
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise InputError(
            f"needs: expected an order, got a circle: {circle}", hint="take one of them out"
        ) from error
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        sorter.done(*ready)
        ordered += ready
    return tuple(ordered)
