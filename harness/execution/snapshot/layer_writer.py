"""Writing one layer: every difference to the stack below it, copied while it is hashed.

Rules:
    * A file's content comes from the live project and must be what the scan saw, byte for byte.
    * Everything has the worker's owner, mode 0644 or 0755, and the times of SOURCE_DATE_EPOCH.
    * Nothing is linked or shared: one inode for each path.
    * A path that goes is a 0:0 character device, a folder that replaces something else carries
      `user.overlay.opaque=y` (kernel: overlayfs.rst); a plain user may make both since Linux 5.8.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from harness.execution.snapshot.cursor import FolderCursor
from harness.execution.snapshot.delta import Step
from harness.execution.snapshot.layers import Entry
from harness.execution.snapshot.read_file import MovedError, Reading, read_once
from harness.execution.snapshot.stat_cache import facts_of
from harness.model.tree import LoadFolder, Node
from harness.store.durable import write_all
from harness.store.handles import kind_of, names_in, open_folder_at, stat_at

EPOCH_NS = 315_532_800 * 1_000_000_000
"""1980-01-01, the SOURCE_DATE_EPOCH of every worker."""

OPAQUE = b"user.overlay.opaque"


class LayerWriter:
    """Writes the tree of one layer.

    Args:
        source_fd: the live project.
        target_fd: the layer's empty tree.
        owner: user and group id of everything in it.
        load: returns the targets of links by digest.
    """

    def __init__(
        self, source_fd: int, target_fd: int, *, owner: tuple[int, int], load: LoadFolder
    ) -> None:
        self._source_fd = source_fd
        self._target_fd = target_fd
        self._owner = owner
        self._load = load
        self._entries: dict[bytes, Entry] = {}

    def write(self, steps: Iterable[Step], *, sync: bool) -> dict[bytes, Entry]:
        """Write the layer and return all that is in it, by path.

        Args:
            steps: a folder before what it holds.
            sync: sync each file.

        Raises:
            MovedError: the project is not what the scan saw.
            OSError: the layer can't be written; EPERM or EOPNOTSUPP where whiteouts are refused.
        """
        digests: dict[bytes, str] = {}
        opaque: set[bytes] = set()
        with (
            FolderCursor(self._source_fd) as source,
            FolderCursor(self._target_fd, makes=True) as target,
        ):
            for step in steps:
                folder, _, name = step.path.rpartition(b"/")
                target_fd = target.at(folder)
                if step.after is None:
                    os.mknod(name, stat.S_IFCHR, 0, dir_fd=target_fd)
                elif step.after.type == "folder":
                    os.mkdir(name, 0o700, dir_fd=target_fd)
                    if step.replaces_with_folder:
                        os.setxattr(f"/proc/self/fd/{target.at(step.path)}", OPAQUE, b"y")
                        opaque.add(step.path)
                elif step.after.type == "symlink":
                    os.symlink(self._load(step.after.digest), name, dir_fd=target_fd)
                    digests[step.path] = step.after.digest
                else:
                    self._copy(_source_at(source, folder), target_fd, name, step.after, sync=sync)
                    digests[step.path] = step.after.digest
        return self._settle(digests, opaque)

    def _copy(self, source_fd: int, target_fd: int, name: bytes, node: Node, *, sync: bool) -> None:
        found = stat_at(name, source_fd)
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_size != node.size:
            raise MovedError
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=target_fd)
        try:
            reading = _read_into(name, source_fd, found, descriptor)
            if reading.digest != node.digest:
                raise MovedError
            os.fchmod(descriptor, 0o755 if node.mode == "100755" else 0o644)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _settle(self, digests: dict[bytes, str], opaque: set[bytes]) -> dict[bytes, Entry]:
        """Give everything its owner and times, and note the facts it has from now on."""
        entries: dict[bytes, Entry] = {}
        self._settle_folder(self._target_fd, b"", entries, digests, opaque)
        os.fchown(self._target_fd, *self._owner)
        os.fchmod(self._target_fd, 0o755)
        os.utime(self._target_fd, ns=(EPOCH_NS, EPOCH_NS))
        return entries

    def _settle_folder(
        self,
        fd: int,
        prefix: bytes,
        entries: dict[bytes, Entry],
        digests: dict[bytes, str],
        opaque: set[bytes],
    ) -> None:
        for name in names_in(fd):
            path = prefix + name
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            kind = kind_of(found.st_mode)
            if kind == "folder":
                with open_folder_at(name, fd) as child:
                    self._settle_folder(child, path + b"/", entries, digests, opaque)
                    os.fchmod(child, 0o755)
                kind = "opaque" if path in opaque else "folder"
            elif kind == "character-device":
                kind = "whiteout"
            os.chown(name, *self._owner, dir_fd=fd, follow_symlinks=False)
            os.utime(name, ns=(EPOCH_NS, EPOCH_NS), dir_fd=fd, follow_symlinks=False)
            facts = facts_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
            entries[path] = Entry(kind, digests.get(path, ""), facts)


def _source_at(source: FolderCursor, folder: bytes) -> int:
    try:
        return source.at(folder)
    except OSError as error:
        # Gone, swapped, closed to us: the next scan says which, by name.
        raise MovedError from error


def _read_into(name: bytes, source_fd: int, found: os.stat_result, descriptor: int) -> Reading:
    try:
        return read_once(name, source_fd, found, sink=lambda chunk: write_all(descriptor, chunk))
    except PermissionError as error:
        raise MovedError from error
