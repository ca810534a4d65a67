"""What the kernel says of a file without opening it, packed so that a folder compares in one go.

Rules:
    * The same facts mean the same content: user space can't set the ctime. Facts that were taken
      within the clock's grain of a change are the exception; who keeps facts has to drop those.
    * A folder whose own facts are the same holds the same names: making, removing and renaming set
      both its times (POSIX, "File Times Update"). Mercurial's dirstate-v2 relies on the same.
"""

from __future__ import annotations

import os
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


def facts_of(found: os.stat_result) -> Facts:
    """Return the facts of one path."""
    return Facts._make(_FACTS(found))


def pack_one(found: os.stat_result) -> bytes:
    """Return the packed facts of one path."""
    return _RECORD.pack(*_FACTS(found))


def pack_facts(facts: Iterable[Facts]) -> bytes:
    """Return facts packed, one behind the other."""
    return b"".join([_RECORD.pack(*item) for item in facts])


def pack_names(names: Sequence[bytes], folder_fd: int) -> bytes:
    """Return the packed facts of names in a held folder, as they are now.

    Raises:
        OSError: as `os.stat`; one of them is gone, say.
    """
    # The busiest lines of every seal and run: a call a name, and no object that outlives it.
    look, facts, pack = os.stat, _FACTS, _RECORD.pack
    return b"".join(
        [pack(*facts(look(name, dir_fd=folder_fd, follow_symlinks=False))) for name in names]
    )


def unpack_facts(packed: bytes) -> Iterator[Facts]:
    """Yield the facts that were packed.

    Raises:
        struct.error: the bytes were cut.
    """
    return map(Facts._make, _RECORD.iter_unpack(packed))
