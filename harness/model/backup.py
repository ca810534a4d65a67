"""What a backup of the state says of itself: its first member, `manifest.json`.

Format (`harness/backup/v1`): when it was made, how far its ledger goes, every file with size and
digest, and number, size and digest of the objects. An object needs no line of its own: its name is
its digest. The last member, `manifest.digest`, holds the manifest's own. Names are few and plain,
so that nothing can be put beside them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.clock import parse_time
from harness.model.digest import PREFIX, Digest, digest_of, parse_digest

BACKUP_KIND = "harness/backup/v1"
MANIFEST = "manifest.json"
MANIFEST_DIGEST = "manifest.digest"
MAX_MANIFEST = 16 << 20

KEY_FILE = "host/key.pem"
PUBLIC_FILE = "host/key.vkey"
ENTRIES_FILE = "ledger/entries.jsonl"
CHECKPOINT_FILE = "ledger/checkpoint"
IMAGES_FILE = "images.lock"
NEEDED = (PUBLIC_FILE, CHECKPOINT_FILE, ENTRIES_FILE)

_OTHER = re.compile(
    r"projects/[0-9a-f]{32}/project\.json|ledger/torn/[0-9]{1,16}-[0-9a-f]{12}", re.ASCII
)
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFile:
    """One file of a backup.

    Attributes:
        path: in the state folder.
        size: bytes.
        digest: of its bytes.
    """

    path: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The objects of a backup, taken together.

    Attributes:
        count: how many there are.
        bytes: their sizes, added up.
        digest: over their digests, sorted, each as text with a newline.
    """

    count: int
    bytes: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in a backup.

    Attributes:
        created: RFC 3339 time.
        entries: number of ledger entries.
        root: Merkle root over them.
        last: RFC 3339 time of the last one; empty when there is none.
        files: by path, sorted.
        objects: all objects together.
    """

    created: str
    entries: int
    root: Digest
    last: str
    files: tuple[BackupFile, ...]
    objects: Objects

    @property
    def has_key(self) -> bool:
        """Tell whether the private host key is in it."""
        return any(file.path == KEY_FILE for file in self.files)

    @property
    def digest_line(self) -> bytes:
        """Return what the last member of the backup holds."""
        return digest_of(self.to_bytes()).encode() + b"\n"

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical_bytes(
            {
                "_type": BACKUP_KIND,
                "created": self.created,
                "entries": self.entries,
                "root": self.root,
                "last": self.last,
                "files": [
                    {"path": file.path, "size": file.size, "digest": file.digest}
                    for file in self.files
                ],
                "objects": {
                    "count": self.objects.count,
                    "bytes": self.objects.bytes,
                    "digest": self.objects.digest,
                },
            }
        )


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        InputError: malformed, with files that a backup never holds, or without those it needs.
        NewerStateError: a newer harness wrote it.
    """
    value = parse_canonical(data, BACKUP_KIND)
    try:
        manifest = Manifest(
            created=value["created"],
            entries=value["entries"],
            root=parse_digest(value["root"]),
            last=value["last"],
            files=tuple(
                BackupFile(
                    path=item["path"], size=item["size"], digest=parse_digest(item["digest"])
                )
                for item in value["files"]
            ),
            objects=Objects(
                count=value["objects"]["count"],
                bytes=value["objects"]["bytes"],
                digest=parse_digest(value["objects"]["digest"]),
            ),
        )
        numbers = [file.size for file in manifest.files]
        numbers += [manifest.entries, manifest.objects.count, manifest.objects.bytes]
        if manifest.to_bytes() != data or any(type(n) is not int or n < 0 for n in numbers):
            raise InputError("manifest: has unknown or malformed members")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"manifest: malformed: {error!r}"[:200]) from error
    parse_time(manifest.created)
    _check_paths([file.path for file in manifest.files])
    return manifest


def _check_paths(paths: list[str]) -> None:
    if paths != sorted(set(paths)):
        raise InputError("manifest: expected files sorted, each once")
    for path in paths:
        if path not in (*NEEDED, KEY_FILE, IMAGES_FILE) and not _OTHER.fullmatch(path):
            raise InputError(f"manifest: {path!r:.100} is no file of a backup")
    for path in NEEDED:
        if path not in paths:
            raise InputError(f"manifest: {path} is missing")


def object_path(digest: Digest) -> str:
    """Return the name of an object in a backup."""
    digits = digest.removeprefix(PREFIX)
    return f"objects/{digits[:2]}/{digits[2:]}"


def parse_object_path(path: str) -> Digest:
    """Read the name of an object.

    Raises:
        InputError: any other name.
    """
    match = _OBJECT.fullmatch(path)
    if not match:
        raise InputError(f"backup: expected an object, got {path!r:.100}")
    return Digest(PREFIX + match[1] + match[2])


def digest_of_names(digests: Iterable[Digest]) -> Digest:
    """Return the digest over the names of objects, given in their order."""
    seen = hashlib.sha256()
    for digest in digests:
        seen.update(digest.encode() + b"\n")
    return Digest(PREFIX + seen.hexdigest())


def describe(path: str, data: bytes) -> BackupFile:
    """Return the line of a file whose bytes are given."""
    return BackupFile(path=path, size=len(data), digest=digest_of(data))
