"""Reading a snapshot back: its objects, its files out of the layers, and whether they still are it.

Rules:
    * What leaves here has the digest that the snapshot names, or an error leaves.
    * Layers are walked by held handles, no link is followed, and a layer hides what is below it
      exactly as the kernel's overlay does.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

from harness.errors import Issue, VerificationError
from harness.execution.snapshot.contents import Content, read_contents
from harness.execution.snapshot.layer_check import find_differences, is_opaque
from harness.execution.snapshot.layers import Layer, find_stack
from harness.model.digest import PREFIX, Digest
from harness.model.relpath import show
from harness.model.tree import Node, look_up
from harness.store.handles import FILE_FLAGS, open_folder_at, open_folder_path, stat_at
from harness.store.state import StateFolder

_AGAIN = "seal again; it makes the layers anew"


class SnapshotView:
    """A snapshot, for reading.

    Args:
        state: where objects and layers are.
        digest: the snapshot.
    """

    def __init__(self, state: StateFolder, digest: Digest) -> None:
        self._state = state
        self.digest = digest

    def load(self, digest: Digest) -> bytes:
        """Return a folder object, a link's target or an ignore file, verified.

        Raises:
            VerificationError: it is missing or damaged.
        """
        return self._state.blobs.get(digest)

    @property
    def layers(self) -> tuple[Path, ...]:
        """Return the trees that, stacked, show the snapshot; top first, never empty.

        Raises:
            VerificationError: there is no such stack any more.
            StateError: the index can't be read.
        """
        return tuple(layer.tree for layer in self._stack())

    def open(self, path: bytes) -> BinaryIO:
        """Open the content of a file; close it, or use it in a `with` block.

        The last bytes come only when all of them had the right digest; the read that would return
        them raises VerificationError otherwise.

        Raises:
            VerificationError: the snapshot has no file there, or the layers don't.
        """
        node = self._node(path, "file")
        for layer in self._stack():
            descriptor, hides = _open_in(layer, path)
            if descriptor >= 0:
                reader = io.BufferedReader(_VerifiedFile(descriptor, path, node))
                return cast("BinaryIO", reader)
            if hides:
                break
        raise VerificationError(f"{show(path)}: is not in the snapshot's layers", hint=_AGAIN)

    def read_link(self, path: bytes) -> bytes:
        """Return a link's target.

        Raises:
            VerificationError: the snapshot has no link there, or its target is lost.
        """
        return self.load(self._node(path, "symlink").digest)

    def contents(self) -> Iterator[Content]:
        """Yield everything in the snapshot, a folder before what it holds.

        Raises:
            VerificationError: an object or a layer is missing or damaged.
            StateError: a layer's list can't be read.
        """
        return read_contents(self._stack(), self.load, self.digest)

    def verify(self) -> None:
        """Check that the layers still are what was sealed.

        Raises:
            VerificationError: they are not; every path is named.
            StateError: a layer's list can't be read.
        """
        issues: list[Issue] = []
        for layer in self._stack():
            try:
                issues += find_differences(layer)
            except OSError as error:
                raise VerificationError(
                    f"layer {layer.name}: can't be read: {error.strerror}", hint=_AGAIN
                ) from error
        if issues:
            raise VerificationError(
                f"snapshot: {issues[0]}",
                hint="somebody wrote below the state folder; remove these layers and seal again",
                issues=tuple(issues),
            )

    def _stack(self) -> tuple[Layer, ...]:
        stack = find_stack(self._state.layers, self.digest)
        if not stack:
            raise VerificationError(f"snapshot {self.digest}: has no layers here", hint=_AGAIN)
        return stack

    def _node(self, path: bytes, kind: str) -> Node:
        node = look_up(self.load, self.digest, path)
        if node is None or node.type != kind:
            raise VerificationError(f"{show(path)}: expected a {kind} in the snapshot")
        return node


def _open_in(layer: Layer, path: bytes) -> tuple[int, bool]:
    """Return a handle on a file (-1: none here), and whether the layer hides those below it."""
    *folders, name = path.split(b"/")
    hides = False
    try:
        with ExitStack() as held:
            fd = held.enter_context(open_folder_path(layer.tree))
            for folder in folders:
                found = stat_at(folder, fd)
                if found is None or not stat.S_ISDIR(found.st_mode):
                    return -1, hides or found is not None
                fd = held.enter_context(open_folder_at(folder, fd))
                hides = hides or is_opaque(fd)
            found = stat_at(name, fd)
            if found is None or not stat.S_ISREG(found.st_mode):
                return -1, hides or found is not None
            return os.open(name, FILE_FLAGS, dir_fd=fd), True
    except OSError as error:
        raise VerificationError(
            f"{show(path)}: can't be read in layer {layer.name}: {error.strerror}", hint=_AGAIN
        ) from error


class _VerifiedFile(io.RawIOBase):
    """Reads a file to the size its node names, and holds back the last bytes of a wrong one."""

    def __init__(self, descriptor: int, path: bytes, node: Node) -> None:
        self._descriptor = descriptor
        self._path = path
        self._node = node
        self._hash = hashlib.sha256()
        self._seen = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer (any writable one; its type has no name before Python 3.12)."""
        view = memoryview(buffer).cast("B")
        count = os.readv(self._descriptor, [view])
        self._hash.update(view[:count])
        self._seen += count
        if count == 0 or self._seen >= self._node.size:
            self._check()
        return count

    def _check(self) -> None:
        found = PREFIX + self._hash.hexdigest()
        if self._seen != self._node.size or found != self._node.digest:
            raise VerificationError(
                f"{show(self._path)}: expected {self._node.digest} in the layers, got {found}"
            )

    def close(self) -> None:
        """Give the handle back."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()
