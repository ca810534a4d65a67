"""What a worker left on an engine's own disk, brought here as if it were an overlay's upper layer.

The archive of the workspace is compared with the snapshot while it streams. What is the same is
passed over; what differs is written into a folder of ours, so that one importer serves both
strategies. What is gone is named: that needs no mark on a disk.

Rules:
    * Nothing in the archive chooses where a byte goes: each name is one step below a held folder.
    * More than the limit ends the reading, before the byte that would be too much is written.
    * A new folder gets its mode last, so that one that denies its owner can be filled first.
Refuses: devices, which no worker can make without rights that it never has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from harness.errors import ContainmentError
from harness.execution.snapshot.cursor import FolderCursor
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.archive_reader import PIECE, ArchiveReader, Member
from harness.execution.worker.workspace import NAME_COST
from harness.model.digest import digest_of
from harness.model.relpath import show
from harness.model.tree import Node
from harness.store.durable import link_at, state_error, write_all
from harness.store.handles import git_mode, open_folder_path

SMALL = 1 << 20
"""A file up to this size is compared by its digest in memory, a larger one with the snapshot's."""

MAX_NAMES = 1_000_000
"""Most names that differ, as in an overlay's upper layer."""

TOO_DEEP = 3072
"""Bytes of a path from which on an engine, whose own paths are longer, may leave things out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """What came back.

    Attributes:
        gone: by folder, the names that the snapshot has there and the worker took away.
        size: what the changes hold, every name counted with `NAME_COST` at least.
        complete: whether it is within the limit; otherwise it was read in part, and nothing
            counts as gone.
    """

    gone: Mapping[bytes, frozenset[bytes]]
    size: int
    complete: bool


class _OverLimitError(Exception):
    """The changes hold more than they may. Never leaves this module."""


def read_back(
    archive: Iterator[bytes],
    *,
    root: bytes,
    snapshot: SnapshotView,
    before: Mapping[bytes, Node],
    upper: Path,
    owner: tuple[int, int],
    limit: int,
) -> ReadBack:
    """Read the archive of a workspace and write what the worker changed.

    Args:
        archive: its bytes.
        root: name of the folder it is of.
        snapshot: what the workspace held at first.
        before: all of that by path.
        upper: an empty folder of ours; gets what differs.
        owner: user and group id of the worker.
        limit: most bytes that may differ.

    Raises:
        ContainmentError: a name leads elsewhere, or a device is there.
        EngineUnreachableError: the archive was cut.
        SandboxUnavailableError: the bytes are no such archive.
        StateError: the disk is full.
        VerificationError: a file of the snapshot is damaged.
    """
    try:
        with open_folder_path(upper) as top, FolderCursor(top, makes=True) as cursor:
            base = _Base(snapshot, before)
            work = _Work(ArchiveReader(archive, root), base, cursor, owner, limit)
            try:
                work.take_all()
                gone = work.gone()
            except _OverLimitError:
                gone = None
            work.close_folders()
    except OSError as error:
        raise state_error("write what a worker changed", error) from error
    return ReadBack(gone=gone or {}, size=work.size, complete=gone is not None)


@dataclass(frozen=True, slots=True)
class _Base:
    """What the workspace held at first: the files, and all of it by path."""

    snapshot: SnapshotView
    nodes: Mapping[bytes, Node]


class _Work:
    """One archive against one snapshot."""

    def __init__(
        self,
        reader: ArchiveReader,
        base: _Base,
        cursor: FolderCursor,
        owner: tuple[int, int],
        limit: int,
    ) -> None:
        self._reader, self._base, self._cursor = reader, base, cursor
        # Root gives it all away first: nothing of root's may have a worker's setuid bit.
        self._owner = owner if os.geteuid() == 0 else None
        self._limit = limit
        self._missing = dict(base.nodes)
        self._kept: set[bytes] = {b""}
        self._modes: list[tuple[bytes, int]] = []
        self._names = 0
        self.size = 0

    def take_all(self) -> None:
        for member in self._reader.members():
            if member.path:
                self._take(member, self._missing.pop(member.path, None))

    def gone(self) -> dict[bytes, frozenset[bytes]]:
        """Return what was not met, each subtree by its top; a name costs what a mark would."""
        found: dict[bytes, set[bytes]] = {}
        for path in self._missing:
            folder, _, name = path.rpartition(b"/")
            if folder in self._kept:
                self._charge(0)
                self._cursor.at(folder)  # makes it, so that the importer comes by
                found.setdefault(folder, set()).add(name)
        return {folder: frozenset(names) for folder, names in found.items()}

    def close_folders(self) -> None:
        """Give the new folders the modes they had, the innermost first."""
        for path, mode in reversed(self._modes):
            folder, name = self._place(path)
            self._settle(folder, name, mode)

    def _take(self, member: Member, before: Node | None) -> None:
        if len(member.path) > TOO_DEEP:
            raise _OverLimitError
        match member.kind:
            case "folder":
                self._take_folder(member, before)
            case "file":
                self._take_file(member, before)
            case "symlink":
                self._take_symlink(member, before)
            case "hard-link":
                self._take_hard_link(member)
            case "fifo":
                self._charge(0)
                folder, name = self._place(member.path)
                os.mkfifo(name, 0o600, dir_fd=folder)
                self._settle(folder, name, member.mode)
            case _:
                raise ContainmentError(
                    f"workspace: {show(member.path)}: expected no device, got a {member.kind}"
                )

    def _take_folder(self, member: Member, before: Node | None) -> None:
        if before is not None and before.type == "folder":
            self._kept.add(member.path)
            return
        self._charge(0)
        folder, name = self._place(member.path)
        os.mkdir(name, 0o700, dir_fd=folder)
        self._modes.append((member.path, member.mode))

    def _take_symlink(self, member: Member, before: Node | None) -> None:
        if before is not None and (before.type, before.digest) == (
            "symlink",
            digest_of(member.target),
        ):
            return
        self._charge(0)
        folder, name = self._place(member.path)
        os.symlink(member.target, name, dir_fd=folder)

    def _take_file(self, member: Member, before: Node | None) -> None:
        pieces: Iterable[bytes] = self._reader.content()
        if before is not None and (before.type, before.mode, before.size) == (
            "file",
            git_mode(member.mode),
            member.size,
        ):
            changed = self._content_if_changed(member, before)
            if changed is None:
                return
            pieces = changed
        self._charge(member.size)
        self._write(member.path, member.mode, pieces)

    def _content_if_changed(self, member: Member, before: Node) -> Iterable[bytes] | None:
        """Compare a file with the snapshot's of the same size; None when it is the same."""
        if member.size <= SMALL:
            data = b"".join(self._reader.content())
            return None if digest_of(data) == before.digest else (data,)
        same = 0
        with self._base.snapshot.open(member.path) as old:
            for piece in self._reader.content():
                if old.read(len(piece)) != piece:
                    return chain(self._start(member.path, same), (piece,), self._reader.content())
                same += len(piece)
        return None

    def _start(self, path: bytes, size: int) -> Iterator[bytes]:
        """Yield the first bytes of a file of the snapshot."""
        with self._base.snapshot.open(path) as old:
            while size:
                piece = old.read(min(size, PIECE))
                size -= len(piece)
                yield piece

    def _take_hard_link(self, member: Member) -> None:
        """Link to what was written; what is as in the snapshot is written now, as a copy-up is."""
        if not self._reader.has(member.target):
            raise ContainmentError(
                f"workspace: {show(member.path)}: is a link to what did not come before it"
            )
        self._charge(0)
        source, old_name = self._place(member.target)
        try:
            os.stat(old_name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            self._copy_up(member)
        # The cursor closes what it leaves, and a link needs both folders.
        source, old_name = self._place(member.target)
        held = os.dup(source)
        try:
            folder, name = self._place(member.path)
            link_at(old_name, name, source_fd=held, target_fd=folder)
        finally:
            os.close(held)

    def _copy_up(self, member: Member) -> None:
        node = self._base.nodes.get(member.target)
        if node is None or node.type == "folder":
            raise ContainmentError(f"workspace: {show(member.path)}: is a link to a folder")
        if node.type == "symlink":
            folder, name = self._place(member.target)
            os.symlink(self._base.snapshot.load(node.digest), name, dir_fd=folder)
        else:
            self._charge(node.size)
            self._write(member.target, member.mode, self._start(member.target, node.size))

    def _charge(self, size: int) -> None:
        """Count one name more.

        Raises:
            _OverLimitError: it does not fit any more.
        """
        self._names += 1
        cost = max(size, NAME_COST)
        if self.size + cost > self._limit or self._names > MAX_NAMES:
            raise _OverLimitError
        self.size += cost

    def _place(self, path: bytes) -> tuple[int, bytes]:
        folder, _, name = path.rpartition(b"/")
        return self._cursor.at(folder), name

    def _write(self, path: bytes, mode: int, pieces: Iterable[bytes]) -> None:
        folder, name = self._place(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            for piece in pieces:
                write_all(descriptor, piece)
            if self._owner:
                os.fchown(descriptor, *self._owner)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def _settle(self, folder: int, name: bytes, mode: int) -> None:
        """Give what was just made its owner and its mode."""
        if self._owner:
            os.chown(name, *self._owner, dir_fd=folder, follow_symlinks=False)
        os.chmod(name, mode, dir_fd=folder)
