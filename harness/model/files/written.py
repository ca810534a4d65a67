"""Where the fields of a file stand: to tell a value that is written from one that is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.model.files.mistakes import Mistakes, Place
from harness.model.files.strict_yaml import Node, parse_yaml


def written_fields(data: bytes, file: str) -> dict[str, str]:
    """Return the place of every field, as `limits.memory` or `steps[0].timeout`.

    Args:
        data: the file's bytes.
        file: its path, for places as `file:line:column`.

    Raises:
        InputError: it is no strict YAML file.
    """
    mistakes = Mistakes(file)
    root = parse_yaml(data, mistakes)
    mistakes.stop_if_any("not a strict YAML file")
    return {name: mistakes.where(place) for name, place in _fields(root, "")}


def _fields(node: Node, label: str) -> Iterator[tuple[str, Place]]:
    if isinstance(node.value, Mapping):
        for name, child in node.value.items():
            path = f"{label}.{name}" if label else name
            yield path, node.keys[name]
            yield from _fields(child, path)
    elif isinstance(node.value, tuple):
        for number, child in enumerate(node.value):
            yield from _fields(child, f"{label}[{number}]")
