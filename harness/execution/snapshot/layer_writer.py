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
from collections.abc import Iterable, Mapping

from harness.execution.snapshot.cursor import FolderCursor
from harness.execution.snapshot.delta import Step
from harness.execution.snapshot.facts import pack_one
from harness.execution.snapshot.layer_list import LayerList, ListedFolder, Written
from harness.execution.snapshot.read_file import MovedError, Reading, read_once
from harness.model.tree import LoadFolder, Node
from harness.store.durable import write_all
from harness.store.handles import stat_at

EPOCH_NS = 315_532_800 * 1_000_000_000
"""1980-01-01, the SOURCE_DATE_EPOCH of every worker."""

OPAQUE = b"user.overlay.opaque"

_TIMES = (EPOCH_NS, EPOCH_NS)


class LayerWriter:
    """Writes the tree of one layer.

    Args:
        source_fd: the live project.
        target_fd: the layer's empty tree.
        owner: user and group id of everything in it.
        load: returns the targets of links by digest.
        contents: what the scan read of files, by digest; the others are read again.
    """

    def __init__(
        self,
        source_fd: int,
        target_fd: int,
        *,
        owner: tuple[int, int],
        load: LoadFolder,
        contents: Mapping[str, bytes],
    ) -> None:
        self._source_fd = source_fd
        self._target_fd = target_fd
        self._owner = owner
        self._load = load
        self._contents = contents
        self._written: dict[bytes, dict[bytes, Written]] = {b"": {}}
        self._opaque: set[bytes] = set()

    def write(self, steps: Iterable[Step], *, sync: bool) -> LayerList:
        """Write the layer and return all that is in it.

        Args:
            steps: a folder before what it holds.
            sync: sync each file.

        Raises:
            MovedError: the project is not what the scan saw.
            OSError: the layer can't be written; EPERM or EOPNOTSUPP where whiteouts are refused.
        """
        with (
            FolderCursor(self._source_fd) as source,
            FolderCursor(self._target_fd, makes=True) as target,
        ):
            for step in steps:
                folder, _, name = step.path.rpartition(b"/")
                target_fd = target.at(folder)
                if step.after is not None and step.after.type == "folder":
                    os.mkdir(name, 0o700, dir_fd=target_fd)
                    self._note_folder(step.path)
                    if step.replaces_with_folder:
                        os.setxattr(f"/proc/self/fd/{target.at(step.path)}", OPAQUE, b"y")
                        self._opaque.add(step.path)
                    continue
                self._note_folder(folder)
                self._written[folder][name] = self._write(
                    step, name, source, folder, target_fd, sync=sync
                )
            return self._settle_folders(target)

    def _note_folder(self, path: bytes) -> None:
        """Note a folder and those above it, which a small difference does not list."""
        while path not in self._written:
            self._written[path] = {}
            path = path.rpartition(b"/")[0]

    def _write(
        self,
        step: Step,
        name: bytes,
        source: FolderCursor,
        folder: bytes,
        target_fd: int,
        *,
        sync: bool,
    ) -> Written:
        """Write what is no folder."""
        node = step.after
        if node is None:
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=target_fd)
            return Written("whiteout", "", self._settle(name, target_fd))
        if node.type == "symlink":
            os.symlink(self._load(node.digest), name, dir_fd=target_fd)
            return Written("symlink", node.digest, self._settle(name, target_fd))
        mode = 0o755 if node.mode == "100755" else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=target_fd)
        try:
            content = self._contents.get(node.digest)
            if content is None:
                _copy(name, _source_at(source, folder), descriptor, node)
            else:
                write_all(descriptor, content)
            facts = self._settle_handle(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return Written("file", node.digest, facts)

    def _settle(self, name: bytes, folder_fd: int) -> bytes:
        """Give a link or a whiteout its owner and times; return its facts from now on."""
        os.chown(name, *self._owner, dir_fd=folder_fd, follow_symlinks=False)
        os.utime(name, ns=_TIMES, dir_fd=folder_fd, follow_symlinks=False)
        return pack_one(os.stat(name, dir_fd=folder_fd, follow_symlinks=False))

    def _settle_handle(self, descriptor: int, mode: int) -> bytes:
        """Give a file or folder its owner, mode and times; return its facts from now on."""
        found = os.fstat(descriptor)
        if (found.st_uid, found.st_gid) != self._owner:
            os.fchown(descriptor, *self._owner)
        if stat.S_IMODE(found.st_mode) != mode:
            os.fchmod(descriptor, mode)
        os.utime(descriptor, ns=_TIMES)
        return pack_one(os.fstat(descriptor))

    def _settle_folders(self, target: FolderCursor) -> LayerList:
        """Settle every folder after those in it: a new name sets the times of its folder."""
        return tuple(
            ListedFolder.pack(
                path,
                self._written[path],
                own=self._settle_handle(target.at(path), 0o755),
                opaque=path in self._opaque,
            )
            for path in sorted(self._written, reverse=True)
        )


def _copy(name: bytes, source_fd: int, descriptor: int, node: Node) -> None:
    """Copy a file of the live project that is what the scan saw, byte for byte."""
    found = stat_at(name, source_fd)
    if found is None or not stat.S_ISREG(found.st_mode) or found.st_size != node.size:
        raise MovedError
    if _read_into(name, source_fd, found, descriptor).digest != node.digest:
        raise MovedError


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
