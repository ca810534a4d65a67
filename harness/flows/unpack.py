"""Reading a backup into a folder: nothing is believed, and nothing is written but what it may hold.

Rules:
    * The manifest comes first and says what follows, its digest comes last; members stand in one
      order, each once.
    * A file has the digest that the manifest names, an object the digest that is its name.
    * Paths are those of a backup (`harness.model.backup`); none can lead out of the folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError, VerificationError
from harness.model.backup import (
    MANIFEST,
    MANIFEST_DIGEST,
    MAX_MANIFEST,
    BackupFile,
    Manifest,
    digest_of_names,
    parse_manifest,
    parse_object_path,
)
from harness.model.digest import PREFIX, Digest
from harness.store.archive import ArchiveReader
from harness.store.durable import state_error, write_all


def unpack(archive: ArchiveReader, folder: Path) -> Manifest:
    """Read a whole backup into an empty folder.

    Args:
        archive: at its beginning.
        folder: exists, mode 0700.

    Raises:
        VerificationError: it is cut off, damaged, or holds what a backup does not.
        NewerStateError: a newer harness wrote it.
        StateError: the folder can't be written.
        OSError: the archive can't be read.
    """
    try:
        manifest = parse_manifest(_read_manifest(archive))
        for file in manifest.files:
            _unpack_file(archive, file, folder)
        _unpack_objects(archive, manifest, folder)
    except InputError as error:
        raise VerificationError(f"backup: {error.message}") from error
    return manifest


def _read_manifest(archive: ArchiveReader) -> bytes:
    member = archive.next()
    if member is None or member[0] != MANIFEST or member[1] > MAX_MANIFEST:
        raise VerificationError(
            f"backup: expected {MANIFEST} first", hint="`harness state backup` writes such files"
        )
    return b"".join(archive.content())


def _unpack_file(archive: ArchiveReader, file: BackupFile, folder: Path) -> None:
    member = archive.next()
    if member != (file.path, file.size):
        raise VerificationError(f"backup: expected {file.path}, got {_show(member)}")
    found = _write(folder, file.path, archive.content(), mode=0o600)
    if found != file.digest:
        raise VerificationError(f"backup: {file.path}: expected {file.digest}, got {found}")


def _unpack_objects(archive: ArchiveReader, manifest: Manifest, folder: Path) -> None:
    names: list[Digest] = []
    size = 0
    while (member := archive.next()) is not None and member[0] != MANIFEST_DIGEST:
        digest = parse_object_path(member[0])
        if names and digest <= names[-1]:
            raise VerificationError(f"backup: expected objects sorted, each once, got {member[0]}")
        found = _write(folder, member[0], archive.content(), mode=0o400)
        if found != digest:
            raise VerificationError(f"backup: {member[0]}: its bytes have another digest")
        names.append(digest)
        size += member[1]
    end = manifest.digest_line
    if (
        member != (MANIFEST_DIGEST, len(end))
        or b"".join(archive.content()) != end
        or archive.next() is not None
    ):
        raise VerificationError("backup: expected the manifest's digest, and then its end")
    objects = manifest.objects
    if (len(names), size, digest_of_names(names)) != (objects.count, objects.bytes, objects.digest):
        raise VerificationError(
            f"backup: expected {objects.count} objects of {objects.bytes} bytes, got {len(names)} "
            f"of {size}, or others"
        )


def _write(folder: Path, name: str, chunks: Iterator[bytes], *, mode: int) -> Digest:
    """Write a new file and return the digest of what was written."""
    seen = hashlib.sha256()
    path = folder / name
    try:
        for above in reversed(Path(name).parents):
            (folder / above).mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, mode)
    except OSError as error:
        raise state_error(f"write {path.name}", error) from error
    try:
        for chunk in chunks:
            seen.update(chunk)
            _write_chunk(descriptor, chunk, path)
    finally:
        os.close(descriptor)
    return Digest(PREFIX + seen.hexdigest())


def _write_chunk(descriptor: int, chunk: bytes, path: Path) -> None:
    try:
        write_all(descriptor, chunk)
    except OSError as error:
        raise state_error(f"write {path.name}", error) from error


def _show(member: tuple[str, int] | None) -> str:
    return "its end" if member is None else f"{member[0]!r:.100} of {member[1]} bytes"
