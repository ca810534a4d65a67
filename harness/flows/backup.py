"""Backup: everything of the state that can't be made again, in one file, while others work.

Order: the ledger's signed lines first, then whatever objects there are. An object is stored before
the entry that names it, so nothing that an entry in the backup names can be missing.

In it: the ledger, the host's public key (the private one only when asked for), objects, project
records, images.lock. Not in it, for it can be made again: snapshot layers, the cache of image
bases, derived indexes, folders of runs, an engine of our own.

Refuses while an apply is between its intent and its end: only the project and its journal, which
are not in a backup, would know how it ended.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import InputError, StateError, VerificationError
from harness.flows.named_objects import named_objects
from harness.flows.session import Host, now_text
from harness.ledger.chain import hash_text
from harness.ledger.key_folder import KeyFolder
from harness.ledger.reader import SignedLines
from harness.model.backup import (
    CHECKPOINT_FILE,
    ENTRIES_FILE,
    KEY_FILE,
    MANIFEST,
    MANIFEST_DIGEST,
    PUBLIC_FILE,
    BackupFile,
    Manifest,
    Objects,
    describe,
    digest_of_names,
    object_path,
)
from harness.model.digest import Digest, short
from harness.model.entry import Entry
from harness.store.archive import ArchiveWriter
from harness.store.blobs import BlobStore
from harness.store.durable import rename, state_error, sync_folder
from harness.store.prefix import digest_prefix, read_prefix
from harness.store.state import StateFolder

APPLY_SECONDS = 15.0
"""How long to wait for the end of an apply."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A backup that was made.

    Attributes:
        file: where it is.
        manifest: what is in it.
        key: the verifier key in force.
        checkpoint: the signed note over its ledger, to keep elsewhere.
    """

    file: Path
    manifest: Manifest
    key: str
    checkpoint: str


def back_up(host: Host, file: Path, *, with_key: bool) -> BackedUp:
    """Write a backup of this host's state.

    Args:
        host: this host.
        file: where to; nothing is there yet. Only its owner will be able to read it.
        with_key: also the private host key.

    Raises:
        InputError: something is there, it lies in the state folder, or nothing was recorded yet.
        VerificationError: the ledger or an object is damaged; nothing was written.
        StateError: the file can't be written, an apply does not end, or the key is not there.
    """
    _check_target(host.state, file)
    lines = _wait_for_applies(host)
    small = _small_files(host.state, lines, with_key=with_key)
    objects = dict(sorted(host.blobs.listing()))
    _require_whole(host.blobs, lines, objects)
    entries = host.state.ledger / "entries.jsonl"
    length = lines.head.length
    files = [describe(path, data) for path, data in small.items()]
    files.append(BackupFile(path=ENTRIES_FILE, size=length, digest=digest_prefix(entries, length)))
    manifest = Manifest(
        created=now_text(),
        entries=lines.head.tree.size,
        root=hash_text(lines.head.tree.root()),
        last=lines.head.time,
        files=tuple(sorted(files, key=lambda item: item.path)),
        objects=Objects(
            count=len(objects),
            bytes=sum(objects.values()),
            digest=digest_of_names(objects),
        ),
    )
    with _writing(file) as stream:
        archive = ArchiveWriter(stream)
        text = manifest.to_bytes()
        archive.add(MANIFEST, len(text), (text,))
        for item in manifest.files:
            found = small.get(item.path)
            content = read_prefix(entries, length) if found is None else (found,)
            archive.add(item.path, item.size, content)
        for digest, size in objects.items():
            archive.add(object_path(digest), size, host.blobs.chunks(digest))
        end = manifest.digest_line
        archive.add(MANIFEST_DIGEST, len(end), (end,))
        archive.finish()
    return BackedUp(
        file=file, manifest=manifest, key=lines.key.to_text(), checkpoint=lines.note.decode()
    )


def _check_target(state: StateFolder, file: Path) -> None:
    try:
        folder = file.parent.resolve(strict=True)
        if not folder.is_dir():
            raise InputError(f"backup: {file}: Not a directory")
        if folder.is_relative_to(state.root.resolve()):
            raise InputError(
                f"backup: {file} lies in the state folder",
                hint="give a place that is still there when the state folder is not",
            )
        if file.exists() or file.is_symlink():
            raise InputError(f"backup: {file} is there already", hint="give another name")
    except OSError as error:
        raise InputError(f"backup: {file}: {error.strerror}") from error


def _wait_for_applies(host: Host) -> SignedLines:
    """Return the ledger's signed lines at a moment at which no apply is under way."""
    until = time.monotonic() + APPLY_SECONDS
    while True:
        lines = host.ledger.signed()
        if lines is None:
            raise InputError("backup: nothing was recorded yet; there is nothing to keep")
        open_ones = _unfinished_applies(lines.entries)
        if not open_ones:
            return lines
        if time.monotonic() >= until:
            raise StateError(
                f"backup: apply {short(open_ones[0].body['diff'])} of project "
                f"{open_ones[0].project[:12]} has not ended",
                hint="wait for it; when its process died, any command that changes something in "
                "that project ends it, `harness seal RECIPE` say",
            )
        time.sleep(_POLL_SECONDS)


def _unfinished_applies(entries: tuple[Entry, ...]) -> list[Entry]:
    ended = {
        entry.body["nonce"] for entry in entries if entry.verb == "apply" and entry.phase == "done"
    }
    return [
        entry
        for entry in entries
        if entry.verb == "apply" and entry.phase == "intent" and entry.body["nonce"] not in ended
    ]


def _small_files(state: StateFolder, lines: SignedLines, *, with_key: bool) -> Mapping[str, bytes]:
    """Return the small files of a backup by path."""
    found = {
        PUBLIC_FILE: lines.key.to_text().encode() + b"\n",
        CHECKPOINT_FILE: lines.note,
    }
    if with_key:
        found[KEY_FILE] = _private_key(state, lines)
    places = [state.images_lock] if state.images_lock.exists() else []
    places += sorted(state.root.glob("projects/*/project.json"))
    places += sorted(state.ledger.glob("torn/*-*"))
    try:
        for place in places:
            found[place.relative_to(state.root).as_posix()] = place.read_bytes()
    except OSError as error:
        raise state_error(f"read {place.name}", error) from error
    return found


def _private_key(state: StateFolder, lines: SignedLines) -> bytes:
    key = KeyFolder(state.host).signer()
    if key.verifier != lines.key:
        raise StateError("backup: the host key was changed just now", hint="give the command again")
    return key.to_pem()


def _require_whole(blobs: BlobStore, lines: SignedLines, objects: Mapping[Digest, int]) -> None:
    """Refuse to make a backup that could not be restored: one without all that its ledger names."""
    try:
        for digest in named_objects(lines.entries, blobs.get):
            if digest not in objects:
                raise VerificationError(
                    f"backup: object {digest} is named by the ledger and missing"
                )
    except InputError as error:
        raise VerificationError(f"backup: {error.message}") from error


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[BinaryIO]:
    """Give a stream for the block; the file appears whole at its end, or not at all."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}.new")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o600), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        rename(beside, file)
    except OSError as error:
        raise StateError(
            f"backup: {file}: {error.strerror}", hint="free some space there, or give another place"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    sync_folder(file.parent)
