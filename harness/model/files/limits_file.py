"""The field `limits` of recipe and policy files: amounts as people write them."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import InputError
from harness.model.files.fields import child
from harness.model.files.mistakes import Mistakes, Place
from harness.model.files.strict_yaml import Node
from harness.model.limits import SPELLING, Limits, tighten
from harness.model.units import parse_amount


def read_limits(
    node: Node | None, *, base: Limits, above: Limits, mistakes: Mistakes, label: str
) -> Limits:
    """Read limits.

    Args:
        node: the field; None when it is not there.
        base: the value of each limit that is not written.
        above: what none may exceed.
        mistakes: takes every amount that is not one, too wide or too small.
        label: name of the field.
    """
    wanted: dict[str, int] = {}
    places: dict[str, Place] = {}
    for name, (word, unit) in SPELLING.items():
        field = child(node, word)
        if field is None or isinstance(field.value, (tuple, Mapping)):
            continue
        try:
            wanted[name] = parse_amount(unit, field.value)
        except InputError as error:
            mistakes.add(field.place, f"{label}.{word}: {error.message}")
            continue
        places[name] = field.place
    where = {name: mistakes.where(place) for name, place in places.items()}
    try:
        tighten(above, wanted, where)
    except InputError as error:
        mistakes.add_all(error, {where[name]: places[name] for name in places})
        return base
    return Limits(**{**base.to_json(), **wanted})
