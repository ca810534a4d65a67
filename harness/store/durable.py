"""Durable writes: the only module that renames, replaces or links files.

Rule: write beside, fsync, rename, fsync the folder. Every rename passes a failpoint before and
after, so that a test can end the process on either side.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path

from harness.errors import StateError
from harness.store.failpoints import pass_failpoint


def write_durably(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file whole: readers see the old bytes or the new ones, never a mixture.

    Raises:
        StateError: the disk is full, or the folder can't be written.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        rename(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise state_error(f"write {path.name}", error) from error
    sync_folder(path.parent)


def rename(source: Path, target: Path) -> None:
    """Rename within one file system, replacing the target.

    Raises:
        OSError: as `os.replace`.
    """
    pass_failpoint("rename.before")
    os.replace(source, target)  # noqa: PTH105 - one spelling for path and handle forms
    pass_failpoint("rename.after")


def rename_at(source: bytes, target: bytes, *, source_fd: int, target_fd: int) -> None:
    """Rename relative to held folder handles, replacing the target.

    Raises:
        OSError: as `os.rename`.
    """
    pass_failpoint("rename.before")
    os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    pass_failpoint("rename.after")


def link_at(source: bytes, target: bytes, *, source_fd: int, target_fd: int) -> None:
    """Hard-link relative to held folder handles, never following a symlink.

    Raises:
        OSError: as `os.link`.
    """
    pass_failpoint("link.before")
    os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    pass_failpoint("link.after")


def make_folder_at(name: bytes, *, folder_fd: int, mode: int) -> None:
    """Make a folder relative to a held handle; the umask takes its part of the mode.

    Raises:
        OSError: as `os.mkdir`; something of that name is there already.
    """
    pass_failpoint("mkdir.before")
    os.mkdir(name, mode, dir_fd=folder_fd)
    pass_failpoint("mkdir.after")


def remove_at(name: bytes, *, folder_fd: int, folder: bool = False) -> None:
    """Remove a file or symlink, or an empty folder, relative to a held handle.

    Raises:
        OSError: as `os.unlink` or `os.rmdir`.
    """
    pass_failpoint("remove.before")
    if folder:
        os.rmdir(name, dir_fd=folder_fd)
    else:
        os.unlink(name, dir_fd=folder_fd)
    pass_failpoint("remove.after")


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte to a descriptor.

    Raises:
        OSError: as `os.write`.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: Path) -> None:
    """Make a folder's names durable.

    Raises:
        StateError: the folder can't be opened or synced.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise state_error(f"sync {path.name}", error) from error


def state_error(what: str, error: OSError) -> StateError:
    """Turn an operating-system error about our own state into a typed one."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "free some disk space, then give the same command again" if full else ""
    return StateError(f"state folder: {what}: {error.strerror or error}", hint=hint)


def remove_folder(path: Path) -> None:
    """Remove a folder of our state with all it holds, never following a link; gone is fine.

    Raises:
        StateError: something in it can't be removed.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise state_error(f"remove {path.name}", error) from error
