"""The project's tree, held by a handle: every path is reached folder by folder, links refused.

Rules:
    * The root is resolved once, when it is opened; after that no path of the host is used.
    * A folder above a changed path must be a real folder on the root's own mount.
    * One holder at a time: the lock is on the root folder itself, so that two state folders, or
      two users, exclude each other too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ContainmentError, StateError
from harness.execution.apply.owner import Owner, owner_for
from harness.model.digest import PREFIX, Digest, digest_of
from harness.model.relpath import show
from harness.model.tree import EMPTY_FOLDER, Node, folder_node
from harness.store.blobs import CHUNK
from harness.store.handles import (
    git_mode,
    kind_of,
    mount_of,
    open_file_at,
    open_folder_at,
    open_folder_path,
    same_file,
    stat_at,
)
from harness.store.lock import acquire_lock

LOCK_SECONDS = 10


class NoFolderError(Exception):
    """A folder above a path is missing, or something else than a folder or link is there."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands at one path now.

    Attributes:
        node: as a snapshot would list it, a folder as if it were empty; None for a kind that no
            snapshot holds.
        stat: from `lstat`.
    """

    node: Node | None
    stat: os.stat_result


class ProjectTree:
    """A held project tree; made by `hold_tree`.

    Args:
        root: handle of the root folder.
        path: where it was opened, for messages and the journal.

    Attributes:
        owner: who gets what lands, when that is not the caller.
    """

    def __init__(self, root: int, path: Path) -> None:
        self.root = root
        self.path = path
        self.owner: Owner | None = owner_for(root)
        self._mount = mount_of(root)

    @contextlib.contextmanager
    def parent(self, path: bytes) -> Iterator[int]:
        """Hold the folder that holds a path, for the block.

        Raises:
            NoFolderError: a folder above it is missing, or is a file by now.
            ContainmentError: a folder above it is a symlink, or another mount.
            OSError: a folder above it can't be opened.
        """
        *parents, _ = path.split(b"/")
        folder, prefix = self.root, b""
        with contextlib.ExitStack() as stack:
            for name in parents:
                prefix = prefix + b"/" + name if prefix else name
                # One handle at a time: the folder above it is let go when this one is held.
                with contextlib.ExitStack() as above:
                    above.push(stack.pop_all())
                    folder = stack.enter_context(self._descend(name, folder, prefix))
            yield folder

    def look(self, path: bytes) -> Standing | None:
        """Return what stands at a path, content hashed; None when there is nothing.

        Raises:
            NoFolderError: a folder above it is missing, or is a file by now.
            ContainmentError: a folder above it is a symlink, or another mount.
            OSError: it can't be read.
        """
        with self.parent(path) as folder:
            return look_at(last_name(path), folder)

    @contextlib.contextmanager
    def _descend(self, name: bytes, folder: int, prefix: bytes) -> Iterator[int]:
        with contextlib.ExitStack() as stack:
            try:
                inner = stack.enter_context(open_folder_at(name, folder))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                found = stat_at(name, folder)
                if found is not None and kind_of(found.st_mode) == "symlink":
                    raise ContainmentError(
                        f"{show(prefix)}: expected a folder, got a symlink"
                    ) from error
                raise NoFolderError(prefix) from error
            if mount_of(inner) != self._mount:
                raise ContainmentError(f"{show(prefix)}: is on another mount than the project")
            yield inner


@contextlib.contextmanager
def hold_tree(root: Path, *, wait_seconds: float = LOCK_SECONDS) -> Iterator[ProjectTree]:
    """Hold a project's tree alone, for the block.

    Args:
        root: the project's root folder.
        wait_seconds: how long to wait for another apply on this tree.

    Raises:
        StateError: another apply holds it, or it can't be opened.
    """
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(open_folder_path(root))
        except OSError as error:
            raise StateError(
                f"project {show(os.fsencode(root))}: {error.strerror}",
                hint="check that the project folder is there and that you may read it",
            ) from error
        busy = f"project {show(os.fsencode(root))}: another apply is at work on it"
        acquire_lock(handle, wait_seconds=wait_seconds, busy=busy)
        yield ProjectTree(handle, root)


def look_at(name: bytes, folder: int) -> Standing | None:
    """Return what stands at a name in a held folder, content hashed.

    Raises:
        OSError: it can't be read, or changes while it is read.
    """
    found = stat_at(name, folder)
    if found is None:
        return None
    kind = kind_of(found.st_mode)
    if kind == "folder":
        return Standing(folder_node(EMPTY_FOLDER), found)
    if kind == "symlink":
        target = os.readlink(name, dir_fd=folder)
        return Standing(Node("symlink", "120000", len(target), digest_of(target)), found)
    if kind != "file":
        return Standing(None, found)
    content = hashlib.sha256()
    with open_file_at(name, folder, found) as stream:
        while chunk := stream.read(CHUNK):
            content.update(chunk)
        if not same_file(os.fstat(stream.fileno()), found):
            raise OSError(errno.ESTALE, "changed while it was read")
    digest = Digest(PREFIX + content.hexdigest())
    return Standing(Node("file", git_mode(found.st_mode), found.st_size, digest), found)


def is_same(standing: Standing | None, node: Node | None) -> bool:
    """Tell whether what stands there is what a changeset says; of a folder only that it is one."""
    if standing is None or node is None:
        return standing is None and node is None
    if node.type == "folder":
        return standing.node is not None and standing.node.type == "folder"
    return standing.node == node


def last_name(path: bytes) -> bytes:
    """Return the last name of a path."""
    return path.rpartition(b"/")[2]
