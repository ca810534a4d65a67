"""A held handle on one folder of a tree, moved from path to path: opens only what changes.

Every step is one name relative to the handle above it, and no link is followed, so a path longer
than the kernel's limit works and a swapped folder leads nowhere.
"""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Self

from harness.store.handles import FOLDER_FLAGS


class FolderCursor:
    """Moves through the folders below a root; use it in a `with` block.

    Args:
        root_fd: held by the caller.
        makes: make a folder that is missing.
    """

    def __init__(self, root_fd: int, *, makes: bool = False) -> None:
        self._root_fd = root_fd
        self._makes = makes
        self._held: list[tuple[bytes, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave(0)

    def at(self, path: bytes) -> int:
        """Return a handle on the folder at a path (empty: the root), good until the next call.

        Raises:
            OSError: it is missing, or it or a folder above it is none.
        """
        names = path.split(b"/") if path else []
        common = 0
        for (held, _), name in zip(self._held, names, strict=False):
            if held != name:
                break
            common += 1
        self._leave(common)
        for name in names[common:]:
            above = self._held[-1][1] if self._held else self._root_fd
            if self._makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=above)
            self._held.append((name, os.open(name, FOLDER_FLAGS, dir_fd=above)))
        return self._held[-1][1] if self._held else self._root_fd

    def _leave(self, depth: int) -> None:
        while len(self._held) > depth:
            os.close(self._held.pop()[1])
