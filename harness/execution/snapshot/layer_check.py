"""Is a layer still what was written? Facts first; where they differ, the content is hashed again.

So a layer restored from a backup passes, and an edited one is named. Cheap enough for every run:
one `lstat` for each entry, no file opened and no folder read while all facts are the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from harness.errors import Issue
from harness.execution.snapshot.facts import facts_of
from harness.execution.snapshot.layer_list import Entry, list_entries, load_layer_list
from harness.execution.snapshot.layer_writer import OPAQUE
from harness.execution.snapshot.layers import Layer
from harness.execution.snapshot.survey import find_changed
from harness.model.digest import PREFIX, digest_of
from harness.model.relpath import show
from harness.store.handles import (
    kind_of,
    names_in,
    open_file_at,
    open_folder_at,
    open_folder_path,
)

CHUNK = 1 << 20

_KIND_ON_DISK = {"opaque": "folder", "whiteout": "character-device"}


def find_differences(layer: Layer) -> tuple[Issue, ...]:
    """Return every path at which a layer is not what was written.

    Raises:
        StateError: the layer's list can't be read.
        OSError: its tree can't be read.
    """
    listed = load_layer_list(layer)
    with open_folder_path(layer.tree) as top:
        if listed and not find_changed(top, (folder.recorded for folder in listed)):
            return ()
        expected = list_entries(layer, listed)
        issues = list(_compare(layer, top, b"", expected))
    issues += [_issue(layer, path, "is missing") for path in expected]
    return tuple(sorted(issues, key=lambda issue: issue.where))


def _compare(layer: Layer, fd: int, prefix: bytes, expected: dict[bytes, Entry]) -> Iterator[Issue]:
    """Check what a folder holds; what was met is taken out of `expected`."""
    for name in names_in(fd):
        path = prefix + name
        entry = expected.pop(path, None)
        if entry is None:
            yield _issue(layer, path, "was not there when the layer was written")
            continue
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if facts_of(found) != entry.facts:
            reason = _difference(layer, name, fd, found, entry)
            if reason:
                yield _issue(layer, path, reason)
        if kind_of(found.st_mode) == "folder":
            with open_folder_at(name, fd) as child:
                yield from _compare(layer, child, path + b"/", expected)


def _difference(layer: Layer, name: bytes, fd: int, found: os.stat_result, entry: Entry) -> str:
    kind = kind_of(found.st_mode)
    wanted = _KIND_ON_DISK.get(entry.kind, entry.kind)
    if kind != wanted:
        return f"expected a {wanted}, got a {kind}"
    if found.st_mode != entry.facts.mode or (found.st_uid, found.st_gid) != layer.owner:
        return "has another mode or owner"
    if kind in ("file", "symlink"):
        digest = (
            _hash(name, fd, found) if kind == "file" else digest_of(os.readlink(name, dir_fd=fd))
        )
        return "" if digest == entry.digest else f"expected {entry.digest}, got {digest}"
    if kind == "character-device" and found.st_rdev != 0:
        return "expected a whiteout, got a device"
    if kind == "folder" and _is_opaque(name, fd) != (entry.kind == "opaque"):
        return "hides other paths than it did"
    return ""


def _hash(name: bytes, fd: int, found: os.stat_result) -> str:
    hasher = hashlib.sha256()
    with open_file_at(name, fd, found) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
    return PREFIX + hasher.hexdigest()


def _is_opaque(name: bytes, fd: int) -> bool:
    with open_folder_at(name, fd) as folder:
        return is_opaque(folder)


def is_opaque(folder_fd: int) -> bool:
    """Tell whether a held folder hides what the layers below hold at its path.

    Raises:
        OSError: its attributes can't be read.
    """
    where = f"/proc/self/fd/{folder_fd}"
    return OPAQUE.decode() in os.listxattr(where) and os.getxattr(where, OPAQUE) == b"y"


def _issue(layer: Layer, path: bytes, message: str) -> Issue:
    return Issue(message=message, where=f"layer {layer.name}: {show(path)}")
