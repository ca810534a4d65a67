"""A project on disk and its snapshots, for tests: write, age, take, and merge layers by hand."""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.execution.snapshot.take import Snapshot, take_snapshot
from harness.execution.snapshot.view import SnapshotView
from harness.model.tree import walk
from harness.store.state import StateFolder, open_state

PROJECT = "a1" * 16
OWNER = (os.geteuid(), os.getegid())
LATER_NS = 3_600 * 1_000_000_000


class ProjectTree:
    """A project folder beside a state folder.

    Args:
        base: an empty folder.
    """

    def __init__(self, base: Path) -> None:
        self.root = base / "project"
        self.root.mkdir(parents=True)
        self.state: StateFolder = open_state(base / "state")
        self._ticks = itertools.count(1)

    def write(self, files: Mapping[str, bytes | str | None]) -> None:
        """Write files by path; None makes an empty folder."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def take(self, **options: Any) -> Snapshot:
        """Take a snapshot by a clock that is far ahead, so that no entry is racy."""
        later = time.time_ns() + LATER_NS * next(self._ticks)
        settings: dict[str, Any] = {"owner": OWNER, "clock": lambda: later, **options}
        return take_snapshot(self.root, state=self.state, project=PROJECT, **settings)

    def view(self, snapshot: Snapshot) -> SnapshotView:
        """Return the view of a snapshot."""
        return SnapshotView(self.state, snapshot.digest)

    def paths(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the mode of every path of a snapshot."""
        found = walk(self.state.blobs.get, snapshot.digest)
        return {os.fsdecode(path): node.mode for path, node in found}

    def stored(self) -> list[str]:
        """Return every file below the folders that hold objects and layers."""
        return [
            str(path.relative_to(self.state.root))
            for folder in ("objects", "layers")
            for path in (self.state.root / folder).rglob("*")
            if not path.is_dir()
        ]


def content_of(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return type, execute bit and content of everything below a folder."""
    found: dict[bytes, tuple[str, bytes]] = {}
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = folder + b"/" + name
            found[os.path.relpath(path, top)] = _look(path)
    return found


def merge_layers(layers: tuple[Path, ...]) -> dict[bytes, tuple[str, bytes]]:
    """Return what an overlay of layers (top first) shows, by overlayfs.rst."""
    merged: dict[bytes, tuple[str, bytes]] = {}
    for layer in reversed(layers):
        for path, look in sorted(content_of(layer).items()):
            hides = look[0] != "folder" or _is_opaque(os.fsencode(layer) + b"/" + path)
            if hides or merged.get(path, look)[0] != "folder":
                for below in [item for item in merged if item.startswith(path + b"/")]:
                    del merged[below]
            if look[0] == "whiteout":
                merged.pop(path, None)
            else:
                merged[path] = look
    return merged


def _look(path: bytes) -> tuple[str, bytes]:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return "symlink", os.readlink(path)  # noqa: PTH115 - names are bytes
    if stat.S_ISDIR(found.st_mode):
        return "folder", b""
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "whiteout", b""
    kind = "program" if found.st_mode & stat.S_IXUSR else "file"
    return kind, Path(os.fsdecode(path)).read_bytes()


def _is_opaque(path: bytes) -> bool:
    return b"user.overlay.opaque" in map(os.fsencode, os.listxattr(path, follow_symlinks=False))
