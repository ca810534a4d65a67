"""Removes a tree that somebody hostile made, at any depth.

Rules: no recursion and no path longer than two names, since a worker can nest folders deeper
than PATH_MAX or Python's stack; folders that deny their owner are opened first; no link is
followed. Nobody else may be in the tree: its container is gone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from harness.store.durable import rename_at
from harness.store.handles import FOLDER_FLAGS


def remove_tree(folder: Path) -> None:
    """Remove all that can be removed; what is left stays below the folder. Never raises.

    Folders deep inside are moved up to the top, so that each is one name away from a handle.
    """
    with contextlib.suppress(OSError):
        if folder.is_symlink():
            return
        folder.chmod(0o700)
        top = os.open(folder, FOLDER_FLAGS)
        try:
            waiting = _empty(top, top)
            while waiting:
                waiting += _remove_folder(waiting.pop(), top)
        finally:
            os.close(top)
        folder.rmdir()


def _remove_folder(name: bytes, top: int) -> list[bytes]:
    """Remove a folder at the top; return the names of those that were moved out of it."""
    moved: list[bytes] = []
    with contextlib.suppress(OSError):
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=top)
        try:
            moved = _empty(descriptor, top)
        finally:
            os.close(descriptor)
    with contextlib.suppress(OSError):
        # Also one that could not be opened: empty and of another owner it goes all the same.
        os.rmdir(name, dir_fd=top)
    return moved


def _empty(descriptor: int, top: int) -> list[bytes]:
    """Remove a folder's files; return the names at the top of the folders it held."""
    names: list[bytes] = []
    with os.scandir(descriptor) as entries:
        found = [(os.fsencode(item.name), item.is_dir(follow_symlinks=False)) for item in entries]
    for name, is_folder in found:
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=descriptor)
            continue
        with contextlib.suppress(OSError):
            os.chmod(name, 0o700, dir_fd=descriptor)
        if descriptor == top:
            names.append(name)
            continue
        beside = b".gone-" + secrets.token_hex(8).encode()
        try:
            rename_at(name, beside, source_fd=descriptor, target_fd=top)
        except OSError:
            # Another owner's folder can't be moved by us, but an empty one can be removed.
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=descriptor)
        else:
            names.append(beside)
    return names
