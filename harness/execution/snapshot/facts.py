"""What the kernel says of a file without opening it, packed so that a folder compares in one go.

Rules:
    * The same facts mean the same content: user space can't set the ctime. Facts that were taken
      within the clock's grain of a change are the exception; who keeps facts has to drop those.
    * A folder whose own facts are the same holds the same names: making, removing and renaming set
      both its times (POSIX, "File Times Update"). Mercurial's dirstate-v2 relies on the same.

A tree of 100,000 files is looked at in every seal and every run, so no object is made per file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from struct import Struct
from typing import NamedTuple


class Facts(NamedTuple):
    """What `lstat` says of one path."""

    mode: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


_RECORD = Struct("<IQqqq")
_FACTS = attrgetter("st_mode", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
_FOLDER, _KIND = stat.S_IFDIR, 0o170000


def facts_of(found: os.stat_result) -> Facts:
    """Return the facts of one path."""
    return Facts._make(_FACTS(found))


def pack_one(found: os.stat_result) -> bytes:
    """Return the packed facts of one path."""
    return _RECORD.pack(*_FACTS(found))


def pack_all(found: Iterable[os.stat_result]) -> bytes:
    """Return the packed facts of several paths, one behind the other."""
    return b"".join([_RECORD.pack(*_FACTS(item)) for item in found])


def pack_contents(found: Iterable[os.stat_result]) -> bytes:
    """Return the same, but of a folder the mode alone: what it holds is looked at by itself."""
    return b"".join(
        [
            _RECORD.pack(item.st_mode, 0, 0, 0, 0)
            if item.st_mode & _KIND == _FOLDER
            else _RECORD.pack(*_FACTS(item))
            for item in found
        ]
    )


def pack_facts(facts: Iterable[Facts]) -> bytes:
    """Return facts packed, one behind the other."""
    return b"".join([_RECORD.pack(*item) for item in facts])


def unpack_facts(packed: bytes) -> Iterator[Facts]:
    """Yield the facts that were packed.

    Raises:
        struct.error: the bytes were cut.
    """
    return map(Facts._make, _RECORD.iter_unpack(packed))


def facts_at(packed: bytes, position: int) -> Facts:
    """Return the facts at a position, from 0.

    Raises:
        struct.error: there are not so many.
    """
    return Facts._make(_RECORD.unpack_from(packed, position * _RECORD.size))


def look_at(names: Sequence[bytes], folder_fd: int) -> list[os.stat_result]:
    """Return what `lstat` says of names in a held folder, in their order.

    Raises:
        OSError: as `os.stat`; one of them is gone, say.
    """
    look = os.stat
    return [look(name, dir_fd=folder_fd, follow_symlinks=False) for name in names]
