"""Reading values out of a tree whose shape was checked (`harness.model.files.file_shape`).

What was wrong was taken out of the tree and noted, so a field is either there with the right type
or not there: then the default stands in, and the file is refused at the end all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model.files.mistakes import Place
from harness.model.files.strict_yaml import Node


def children(node: Node | None) -> Mapping[str, Node]:
    """Return the fields of a mapping; none when it is not there."""
    return node.value if node is not None and isinstance(node.value, Mapping) else {}


def items(node: Node | None) -> Sequence[Node]:
    """Return the items of a list, broken ones left in place; none when it is not there."""
    return node.value if node is not None and isinstance(node.value, tuple) else ()


def child(node: Node | None, *names: str) -> Node | None:
    """Return the field at a path of names, or None."""
    for name in names:
        node = children(node).get(name)
    return node


def text(node: Node | None, default: str = "") -> str:
    """Return a text, or the default."""
    return node.value if node is not None and isinstance(node.value, str) else default


def number(node: Node | None, default: int) -> int:
    """Return a whole number, or the default."""
    value = None if node is None else node.value
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def switch(node: Node | None, *, default: bool) -> bool:
    """Return a boolean, or the default."""
    return node.value if node is not None and isinstance(node.value, bool) else default


def texts(node: Node | None) -> Sequence[tuple[str, Place]]:
    """Return the texts of a list with their places."""
    return tuple(
        (item.value, item.place)
        for item in items(node)
        if isinstance(item.value, str) and not item.broken
    )
