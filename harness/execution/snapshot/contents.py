"""A whole snapshot, path by path, for who can't be given its layers.

Rules:
    * The tree of folder objects says what is there; a layer only lends the bytes.
    * Any layer that holds the wanted digest at a path will do, so nothing has to be merged.
    * A file's last bytes leave here only when all of them had the digest that the tree names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from harness.errors import VerificationError
from harness.execution.snapshot.cursor import FolderCursor
from harness.execution.snapshot.layer_list import Entry, load_entries
from harness.execution.snapshot.layers import Layer
from harness.model.digest import PREFIX, Digest
from harness.model.relpath import show
from harness.model.tree import LoadFolder, Node, walk
from harness.store.handles import FILE_FLAGS, open_folder_path

CHUNK = 1 << 20


class Content(NamedTuple):
    """One path of a snapshot.

    Attributes:
        path: in the tree.
        node: what stands there.
        pieces: a file's bytes or a link's target; nothing for a folder. Good until the next path.
    """

    path: bytes
    node: Node
    pieces: Iterator[bytes]


class _Place(NamedTuple):
    """A layer, held open."""

    layer: Layer
    entries: dict[bytes, Entry]
    cursor: FolderCursor


def read_contents(stack: tuple[Layer, ...], load: LoadFolder, root: Digest) -> Iterator[Content]:
    """Yield everything in a snapshot, a folder before what it holds.

    Args:
        stack: layers that together show it.
        load: reads folder objects and link targets.
        root: the snapshot.

    Raises:
        VerificationError: an object is damaged, or no layer holds what the tree names.
        StateError: a layer's list can't be read.
    """
    with ExitStack() as held:
        places = [_hold(held, layer) for layer in stack]
        for path, node in walk(load, root):
            if node.type == "file":
                pieces = _pieces(places, path, node)
            elif node.type == "symlink":
                pieces = iter((load(node.digest),))
            else:
                pieces = iter(())
            yield Content(path, node, pieces)


def _hold(held: ExitStack, layer: Layer) -> _Place:
    try:
        top = held.enter_context(open_folder_path(layer.tree))
    except OSError as error:
        raise _lost(b"", f"layer {layer.name}: {error.strerror}") from error
    return _Place(layer, load_entries(layer), held.enter_context(FolderCursor(top)))


def _pieces(places: list[_Place], path: bytes, node: Node) -> Iterator[bytes]:
    for place in places:
        entry = place.entries.get(path)
        if entry is not None and entry.kind == "file" and entry.digest == node.digest:
            yield from _verified(place, path, node)
            return
    raise _lost(path, "is not in the snapshot's layers")


def _verified(place: _Place, path: bytes, node: Node) -> Iterator[bytes]:
    folder, _, name = path.rpartition(b"/")
    seen, left, pending = hashlib.sha256(), node.size, b""
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=place.cursor.at(folder))
        try:
            while left > 0 and (chunk := os.read(descriptor, min(CHUNK, left))):
                if pending:
                    yield pending
                seen.update(chunk)
                left -= len(chunk)
                pending = chunk
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _lost(path, f"can't be read: {error.strerror}") from error
    found = PREFIX + seen.hexdigest()
    if left or found != node.digest:
        raise _lost(path, f"expected {node.digest} in layer {place.layer.name}, got {found}")
    if pending:
        yield pending


def _lost(path: bytes, reason: str) -> VerificationError:
    place = f"{show(path)}: " if path else ""
    return VerificationError(f"{place}{reason}", hint="seal again; it makes the layers anew")
