"""One look at a folder of a live project: its names, and what `lstat` says of each.

Rules:
    * A folder whose own facts are what they were holds the names it held; it is not read again.
    * The folder's own facts come first, so that what changes meanwhile shows in the next look.
    * Ignored files and what lies in sub-folders may change; the folder itself is the same then.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from harness.execution.snapshot.facts import facts_of, look_at, pack_contents, pack_one
from harness.execution.snapshot.read_file import MovedError
from harness.execution.snapshot.row import OUT, Row
from harness.store.handles import names_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one look at a folder found.

    Attributes:
        own: packed facts of the folder itself.
        names: in byte order.
        joined: the same, joined by slashes.
        found: what `lstat` says of each, in the same order.
    """

    own: bytes
    names: list[bytes]
    joined: bytes
    found: list[os.stat_result]


def list_folder(fd: int, known: Row | None) -> Listing:
    """Look at a held folder.

    Args:
        fd: its handle.
        known: how an earlier scan saw it.

    Raises:
        MovedError: a name went away meanwhile.
        OSError: the folder can't be read.
    """
    own = pack_one(os.fstat(fd))
    if known is not None and known.own == own:
        names = known.list_names()
        try:
            return Listing(own=own, names=names, joined=known.names, found=look_at(names, fd))
        except FileNotFoundError:
            pass  # this disk does not keep a folder's times
    names = names_in(fd)
    try:
        found = look_at(names, fd)
    except FileNotFoundError as error:
        raise MovedError from error
    return Listing(own=own, names=names, joined=b"/".join(names), found=found)


def is_same(listing: Listing, known: Row) -> bool:
    """Tell whether a folder holds what it held, but for what its sub-folders hold."""
    if listing.joined != known.names:
        return False
    if pack_contents(listing.found) == known.facts:
        return True
    for found, seen in zip(listing.found, known.entries().values(), strict=True):
        if seen.facts.mode != found.st_mode:
            return False
        if seen.verdict in OUT or stat.S_ISDIR(found.st_mode):
            continue
        if seen.facts != facts_of(found):
            return False
    return True
