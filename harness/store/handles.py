"""Looking at files through folder handles: never by a whole path, never following a link.

Rules:
    * A name is looked up in a folder that is held open, so nobody can swap what lies above it.
    * `lstat` first; only a regular file is opened, and what was opened is compared with it.
    * Names are bytes. A FIFO, a socket or a device is never opened.

The caller translates `OSError`: only it knows whose folder this is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "symlink",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character-device",
    stat.S_IFBLK: "block-device",
}


def kind_of(mode: int) -> str:
    """Return the word for a file type, `file` or `character-device` say."""
    return _KINDS[stat.S_IFMT(mode)]


def git_mode(mode: int) -> str:
    """Return git's mode of a regular file: 100755 when its owner may execute it."""
    return "100755" if mode & stat.S_IXUSR else "100644"


@contextlib.contextmanager
def open_folder_path(path: Path) -> Iterator[int]:
    """Hold a folder given by its path, which may itself be a link, for the block.

    Raises:
        OSError: as `os.open`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_folder_at(name: bytes, folder_fd: int) -> Iterator[int]:
    """Hold a folder inside a held folder for the block.

    Raises:
        OSError: as `os.open`; ENOTDIR or ELOOP when it is no folder.
    """
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=folder_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_file_at(name: bytes, folder_fd: int, expected: os.stat_result) -> Iterator[BinaryIO]:
    """Open a regular file that was looked at before, for the block.

    Args:
        name: its name.
        folder_fd: the folder that holds it.
        expected: what `stat_at` returned for it.

    Raises:
        OSError: as `os.open`; ESTALE when it is another file by now.
    """
    descriptor, _ = take_file_at(name, folder_fd, expected)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        yield stream


def take_file_at(
    name: bytes, folder_fd: int, expected: os.stat_result
) -> tuple[int, os.stat_result]:
    """Open a regular file that was looked at before; the caller closes the handle.

    Args:
        name: its name.
        folder_fd: the folder that holds it.
        expected: what `stat_at` returned for it.

    Returns:
        The handle, and what `fstat` says of it.

    Raises:
        OSError: as `os.open`; ESTALE when it is another file by now.
    """
    descriptor = os.open(name, FILE_FLAGS, dir_fd=folder_fd)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and same_file(found, expected):
        return descriptor, found
    os.close(descriptor)
    raise OSError(errno.ESTALE, "is another file by now")


def stat_at(name: bytes, folder_fd: int) -> os.stat_result | None:
    """Return what stands at a name, links not followed; None when there is nothing.

    Raises:
        OSError: as `os.stat`, but for a missing file.
    """
    try:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def names_in(folder_fd: int) -> list[bytes]:
    """Return the names in a folder, sorted by their bytes.

    Raises:
        OSError: as `os.listdir`.
    """
    return sorted(os.fsencode(name) for name in os.listdir(folder_fd))


def same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether two looks saw one file with the same size and time of writing."""
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


def mount_of(descriptor: int) -> str:
    """Return the id of the mount a handle is on (proc(5), `/proc/self/fdinfo`).

    It tells a bind mount of the same file system apart, which `st_dev` does not.

    Raises:
        OSError: /proc is not mounted.
    """
    text = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    return next(line for line in text.splitlines() if line.startswith("mnt_id:"))
