"""Which folders of a tree are not as they were on record: one look at each file, none opened.

A tree of 100,000 files is surveyed in every seal and in every run, so what is recorded compares as
bytes. Ignored files and sub-folders count for nothing here: each recorded folder has facts of its
own, and by those it can't have lost, gained or swapped a name (see `facts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from harness.execution.snapshot.cursor import FolderCursor
from harness.execution.snapshot.facts import pack_names, pack_one


class Recorded(NamedTuple):
    """One folder on record.

    Attributes:
        path: in the tree; empty for the top.
        own: packed facts of the folder; empty when they prove nothing.
        names: joined by slashes: all that is to be looked at.
        facts: their packed facts, in the same order.
    """

    path: bytes
    own: bytes
    names: bytes
    facts: bytes


def find_changed(top_fd: int, recorded: Iterable[Recorded]) -> set[bytes]:
    """Return the paths of folders that are not as recorded, or that can't be looked at.

    Args:
        top_fd: the tree, held.
        recorded: folders, those near each other in turn.
    """
    with FolderCursor(top_fd) as cursor:
        return {folder.path for folder in recorded if not _is_same(cursor, folder)}


def _is_same(cursor: FolderCursor, folder: Recorded) -> bool:
    names = folder.names.split(b"/") if folder.names else []
    try:
        fd = cursor.at(folder.path)
        return pack_one(os.fstat(fd)) == folder.own and pack_names(names, fd) == folder.facts
    except OSError:
        return False
