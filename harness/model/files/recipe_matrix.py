"""The field `matrix` of a recipe: which cells it runs in.

Rules:
    * A cell is one value of every key. The cells are all combinations, the last key changing
      fastest, without those that an entry of `exclude` has all values of.
    * At most 64 cells are left: a person approves them together.
    * An entry of `exclude` that leaves nothing out is a mistake: it would only look like a rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from harness.model.files.fields import children, items, text, texts
from harness.model.files.mistakes import Mistakes
from harness.model.files.strict_yaml import Node

MAX_CELLS = 64
"""Most operations of one recipe: what a person can look through before approving it."""

_MAX_COMBINATIONS = 4096
"""Most combinations before `exclude`: they are looked at one by one."""

_EXCLUDE = "exclude"
_LIKE = 'write something like python: ["3.11", "3.12"]'
_SPLIT = "leave values out, or make two recipes of it"

Cell = Mapping[str, str]


def read_matrix_keys(node: Node | None) -> tuple[str, ...]:
    """Return the keys of a matrix, in the order of the file."""
    return tuple(name for name in (node.keys if node else ()) if name != _EXCLUDE)


def read_cells(node: Node | None, mistakes: Mistakes) -> tuple[Cell, ...]:
    """Read the cells of a matrix.

    Args:
        node: the field; None without one.
        mistakes: takes what is wrong with it.

    Returns:
        Each cell; exactly one without values when there is no matrix, or when its mistakes leave
        nothing to go on with.
    """
    values = {
        key: [value for value, _ in texts(children(node).get(key))]
        for key in read_matrix_keys(node)
    }
    if node is None or not all(values.values()):
        return ({},)
    if not values:
        if children(node):  # an empty one was noted as such
            mistakes.add(node.place, "matrix: expected a key with its values, got none", _LIKE)
        return ({},)
    count = math.prod(len(items) for items in values.values())
    if count > _MAX_COMBINATIONS:
        message = f"matrix: expected at most {_MAX_COMBINATIONS} combinations, got {count}"
        mistakes.add(node.place, message, _SPLIT)
        return (_first(values),)
    cells = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
    left = _leave_out(node, cells, values, mistakes)
    if not left:
        mistakes.add(node.place, "matrix: exclude leaves no cell", "take an entry out of exclude")
    elif len(left) > MAX_CELLS:
        message = f"matrix: expected at most {MAX_CELLS} cells, got {len(left)}"
        mistakes.add(node.place, message, _SPLIT)
    return tuple(left) if 0 < len(left) <= MAX_CELLS else (_first(values),)


def _first(values: Mapping[str, Sequence[str]]) -> Cell:
    return {key: row[0] for key, row in values.items()}


def _leave_out(
    node: Node, cells: list[dict[str, str]], values: Mapping[str, Sequence[str]], mistakes: Mistakes
) -> list[dict[str, str]]:
    """Return the cells that no entry of `exclude` names, and note entries that name none."""
    for number, entry in enumerate(items(children(node).get(_EXCLUDE))):
        label = f"matrix.exclude[{number}]"
        wanted = {key: text(value) for key, value in children(entry).items()}
        if entry.broken or not wanted or _note_unknown(entry, wanted, values, label, mistakes):
            continue
        left = [cell for cell in cells if not wanted.items() <= cell.items()]
        if len(left) == len(cells):
            message = f"{label}: leaves nothing out that an entry before it does not"
            mistakes.add(entry.place, message, "remove it")
        cells = left
    return cells


def _note_unknown(
    entry: Node,
    wanted: Cell,
    values: Mapping[str, Sequence[str]],
    label: str,
    mistakes: Mistakes,
) -> bool:
    """Note keys and values that the matrix does not have; tell whether there were any."""
    found = False
    for key, value in wanted.items():
        if key not in values:
            message = f"{label}: the matrix has no key {key!r:.60}"
            mistakes.add(entry.keys[key], message, f"it has: {', '.join(values)}")
            found = True
        elif value not in values[key]:
            place = children(entry)[key].place
            message = f"{label}.{key}: {value!r:.60} is none of its values"
            mistakes.add(place, message, f"it has: {', '.join(values[key][:20])}")
            found = True
    return found
