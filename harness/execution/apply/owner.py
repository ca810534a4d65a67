"""Whose the files are that land: the caller's, but for root, who gives them to the project's owner.

Root can act for somebody else (sudo, the user of a container) without meaning to: files of root's
in a person's project can't be edited or removed by that person any more.

Refuses: to give away what is reached by a name. A folder is opened first, links not followed, so
that whoever owns the folder above can't have another file given to them.
"""

from __future__ import annotations

import os

from harness.store.handles import open_folder_at

Owner = tuple[int, int]
"""Numeric user and group."""


def owner_for(root: int) -> Owner | None:
    """Return who gets what lands; None when that is the caller.

    Args:
        root: handle of the project's folder.

    Raises:
        OSError: as `os.fstat`.
    """
    return owner_of(os.fstat(root)) if os.geteuid() == 0 else None


def owner_of(found: os.stat_result) -> Owner:
    """Return the owner that a look at a file found."""
    return found.st_uid, found.st_gid


def give_folder_at(name: bytes, owner: Owner | None, *, folder_fd: int) -> None:
    """Give a folder to its owner; nothing to do when there is none.

    Raises:
        OSError: it is no folder by now, or can't be given.
    """
    if owner is None:
        return
    with open_folder_at(name, folder_fd) as made:
        os.fchown(made, *owner)
