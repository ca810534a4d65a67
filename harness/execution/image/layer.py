"""Layers: tar archives that depend on content only, so that the same files give the same id.

Rules: names sorted by bytes, one fixed time, numeric owners without names, no set-id bits, no
device nodes (the engine mounts its own /dev), nothing but files, folders and links.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from harness.errors import ContainmentError, VerificationError
from harness.model.seal import FIXED_ENV
from harness.store.durable import state_error

FIXED_TIME = int(FIXED_ENV["SOURCE_DATE_EPOCH"])


class Sink(Protocol):
    """What takes bytes."""

    def write(self, data: bytes) -> object:
        """Take them all."""


class _Writer(io.RawIOBase):
    """A sink as the file object that `tarfile` writes to."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        taken = bytes(memoryview(data))  # type: ignore[arg-type]
        self._sink.write(taken)
        return len(taken)


def write_tree_layer(tree: Path, sink: Sink) -> None:
    """Write the layer of a root file system on the host.

    Args:
        tree: its root folder; no symlink below it is followed.
        sink: takes the tar archive.

    Raises:
        StateError: the tree can't be read.
    """
    first_names: dict[tuple[int, int], str] = {}
    try:
        with tarfile.open(fileobj=_Writer(sink), mode="w|", format=tarfile.GNU_FORMAT) as layer:
            _add_folder(layer, tree, "", first_names)
    except OSError as error:
        raise state_error("read the base tree", error) from error


def _add_folder(
    layer: tarfile.TarFile, folder: Path, prefix: str, first_names: dict[tuple[int, int], str]
) -> None:
    for path in sorted(folder.iterdir(), key=os.fsencode):
        found = path.lstat()
        member = tarfile.TarInfo(prefix + path.name)
        member.mtime = FIXED_TIME
        member.uid, member.gid = found.st_uid, found.st_gid
        member.mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            member.type = tarfile.DIRTYPE
            layer.addfile(member)
            _add_folder(layer, path, f"{member.name}/", first_names)
        elif stat.S_ISLNK(found.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
            layer.addfile(member)
        elif stat.S_ISREG(found.st_mode):
            _add_file(layer, path, member, found, first_names)


def _add_file(
    layer: tarfile.TarFile,
    path: Path,
    member: tarfile.TarInfo,
    found: os.stat_result,
    first_names: dict[tuple[int, int], str],
) -> None:
    member.mode &= ~(stat.S_ISUID | stat.S_ISGID)
    first = first_names.setdefault((found.st_dev, found.st_ino), member.name)
    if first != member.name:
        member.type, member.linkname = tarfile.LNKTYPE, first
        layer.addfile(member)
        return
    member.size = found.st_size
    with path.open("rb") as content:
        layer.addfile(member, content)


def rewrite_layer(archive: bytes, top: str) -> bytes:
    """Return the layer of what a build container made.

    Args:
        archive: tar archive whose members all lie below the folder `top`.
        top: the name that is taken off.

    Raises:
        ContainmentError: a member is not a file, folder or symlink, or lies outside `top`.
        VerificationError: not a tar archive.
    """
    out = io.BytesIO()
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as made,
            tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as layer,
        ):
            for member in sorted(made.getmembers(), key=lambda item: item.name.encode()):
                name = _name_below(member.name, top)
                if name:
                    layer.addfile(_plain_member(member, name), _content(made, member))
    except tarfile.TarError as error:
        raise VerificationError("build container: its archive can't be read") from error
    return out.getvalue()


def _content(made: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO | None:
    return made.extractfile(member) if member.isreg() else None  # type: ignore[return-value]


def _name_below(name: str, top: str) -> str:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] != top or ".." in parts:
        raise ContainmentError(f"build container: expected names below {top}, got {name!r:.100}")
    return "/".join(parts[1:])


def _plain_member(member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    if not (member.isreg() or member.isdir() or member.issym()):
        raise ContainmentError(f"build container: {name!r:.100} is not a file, folder or symlink")
    plain = tarfile.TarInfo(name)
    plain.type, plain.linkname, plain.mtime = member.type, member.linkname, FIXED_TIME
    plain.size = member.size if member.isreg() else 0
    executable = member.isdir() or member.issym() or member.mode & 0o100
    plain.mode = 0o755 if executable else 0o644
    return plain
