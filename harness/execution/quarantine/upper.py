"""The upper layer of a worker's overlay, looked at as what it is: a folder a hostile program made.

Format (kernel, Documentation/filesystems/overlayfs.rst): a deleted path is a character device
0:0; a folder that hides the one below it carries `user.overlay.opaque=y` (`trusted.` for mounts
without `userxattr`). `overlay.redirect` and `overlay.metacopy` say that content lies elsewhere;
our mounts switch both off, so either of them is refused.

Rule: only after the container is gone, and only through `harness.store.handles`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import ContainmentError, StateError
from harness.model.relpath import show
from harness.store.durable import state_error
from harness.store.handles import kind_of, names_in, open_file_at, open_folder_at, open_folder_path

_OVERLAY = ("user.overlay.", "trusted.overlay.")
_ELSEWHERE = ("redirect", "metacopy")
_LABELS = frozenset({"security.selinux"})  # the host's own, on every file of such a host
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What stands at one path of the upper layer.

    Attributes:
        path: inside the tree.
        folder: handle of the folder that holds it, open while the walk is here.
        kind: as in `ByProduct.kind`.
        stat: from `lstat`.
    """

    path: bytes
    folder: int
    kind: str
    stat: os.stat_result

    @property
    def name(self) -> bytes:
        """Return the last name of the path."""
        return self.path.rpartition(b"/")[2]

    @property
    def is_whiteout(self) -> bool:
        """Tell whether this marks a deleted path."""
        return self.kind == "character-device" and self.stat.st_rdev == 0

    @property
    def size(self) -> int:
        """Return the apparent size in bytes; 0 for what has no content."""
        return self.stat.st_size if self.kind in ("file", "symlink") else 0

    @property
    def special_bits(self) -> str:
        """Return the setuid, setgid and sticky bits as an octal digit and zeros, or nothing."""
        bits = stat.S_IMODE(self.stat.st_mode) & _SPECIAL_BITS
        return f"{bits:04o}" if bits and self.kind in ("file", "folder") else ""


@contextlib.contextmanager
def hold_upper(path: Path) -> Iterator[int]:
    """Hold the top folder of an upper layer for the block.

    Raises:
        StateError: it is not there, or can't be opened.
    """
    try:
        holder = open_folder_path(path)
        descriptor = holder.__enter__()
    except OSError as error:
        raise state_error("open the workspace of a run", error) from error
    try:
        yield descriptor
    finally:
        holder.__exit__(None, None, None)


def look(path: bytes, folder: int) -> Seen:
    """Look at one path by its name in a held folder.

    Raises:
        ContainmentError: it is gone: something still writes to the layer.
    """
    try:
        found = os.stat(path.rpartition(b"/")[2], dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise _moved(path, error) from error
    return Seen(path=path, folder=folder, kind=kind_of(found.st_mode), stat=found)


def list_names(path: bytes, folder: int) -> list[bytes]:
    """Return the sorted names in a held folder.

    Raises:
        ContainmentError: it can't be read.
    """
    try:
        return names_in(folder)
    except OSError as error:
        raise _moved(path, error) from error


@contextlib.contextmanager
def enter(seen: Seen) -> Iterator[int]:
    """Hold a folder of the layer for the block.

    Raises:
        ContainmentError: it is no folder by now, or its content lies elsewhere.
    """
    with contextlib.ExitStack() as stack:
        try:
            _unlock(seen, stat.S_IRUSR | stat.S_IXUSR)
            descriptor = stack.enter_context(open_folder_at(seen.name, seen.folder))
        except OSError as error:
            raise _moved(seen.path, error) from error
        _refuse_elsewhere(seen.path, descriptor)
        yield descriptor


@contextlib.contextmanager
def open_content(seen: Seen) -> Iterator[BinaryIO]:
    """Open a regular file of the layer for the block.

    Raises:
        ContainmentError: it is another file by now, or its content lies elsewhere.
    """
    with contextlib.ExitStack() as stack:
        try:
            _unlock(seen, stat.S_IRUSR)
            stream = stack.enter_context(open_file_at(seen.name, seen.folder, seen.stat))
        except OSError as error:
            raise _moved(seen.path, error) from error
        _refuse_elsewhere(seen.path, stream.fileno())
        yield stream


def read_target(seen: Seen) -> bytes:
    """Return the text of a symlink.

    Raises:
        ContainmentError: it is no symlink by now.
    """
    try:
        return os.readlink(seen.name, dir_fd=seen.folder)
    except OSError as error:
        raise _moved(seen.path, error) from error


def is_opaque(descriptor: int) -> bool:
    """Tell whether a held folder hides everything below it."""
    return any(
        name in _attributes(descriptor) and os.getxattr(descriptor, name) == b"y"
        for name in (f"{prefix}opaque" for prefix in _OVERLAY)
    )


def foreign_attributes(descriptor: int) -> list[str]:
    """Return the names of the extended attributes that a worker gave a file, sorted."""
    return sorted(
        name
        for name in _attributes(descriptor)
        if name not in _LABELS and not name.startswith(_OVERLAY)
    )


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise StateError(f"workspace of a run: attributes: {error.strerror}") from error


def _refuse_elsewhere(path: bytes, descriptor: int) -> None:
    for name in _attributes(descriptor):
        if name.startswith(_OVERLAY) and name.rpartition(".")[2] in _ELSEWHERE:
            raise ContainmentError(f"{show(path)}: expected its own content, got a mark {name}")


def _unlock(seen: Seen, needed: int) -> None:
    """Let the owner read what a worker made unreadable; the layer is ours and goes away."""
    if os.geteuid() == 0 or seen.stat.st_mode & needed == needed:
        return
    handle = os.open(seen.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=seen.folder)
    try:
        if os.fstat(handle).st_ino == seen.stat.st_ino:
            # Through /proc, because fchmod refuses an O_PATH handle (open(2)).
            os.chmod(f"/proc/self/fd/{handle}", seen.stat.st_mode & 0o777 | needed)  # noqa: PTH101 - a handle has no path
    finally:
        os.close(handle)


def _moved(path: bytes, error: OSError) -> ContainmentError:
    return ContainmentError(f"{show(path) or '.'}: expected a still layer, got: {error.strerror}")
