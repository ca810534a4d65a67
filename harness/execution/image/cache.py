"""What builds keep: smallest systems, init's program and bases, each a blob and a record by key.

Rule: the record is written after the blob, so that what it names is whole; the blob's digest is
checked again whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from harness.errors import InputError, VerificationError
from harness.execution.image.archive import Layer
from harness.model.canonical import JsonObject, canonical_bytes, parse_canonical
from harness.model.digest import PREFIX, Digest, parse_digest
from harness.store.blobs import BlobWriter
from harness.store.durable import state_error, write_durably
from harness.store.state import StateFolder

RECORD_KIND = "harness/cached-base/v1"

Kept = Literal["minimal", "init", "base"]
"""What a record is of; its file's name begins with it."""


def cached_layer(state: StateFolder, kept: Kept, key: Digest) -> Layer | None:
    """Return what is cached under a key, or None when it has to be made.

    Raises:
        VerificationError: the record is not what a build wrote.
        StateError: it can't be read.
    """
    path = _path(state, kept, key)
    try:
        value = parse_canonical(path.read_bytes(), RECORD_KIND)
        digest, size = parse_digest(value["layer"]), int(value["size"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
    except (InputError, KeyError, TypeError, ValueError) as error:
        raise VerificationError(
            f"{path.name}: not as a build wrote it: {error}", hint=f"remove {path} and build again"
        ) from error
    return _layer(state, digest, size) if state.blobs.has(digest) else None


def store_layer(
    state: StateFolder, kept: Kept, key: Digest, write: Callable[[BlobWriter], object]
) -> Layer:
    """Store what `write` writes under a key; what had the key before is forgotten.

    Raises:
        StateError: the disk is full.
    """
    with state.blobs.writer() as writer:
        write(writer)
        digest, size = writer.commit(), writer.size
    members: JsonObject = {"_type": RECORD_KIND, "key": key, "layer": digest, "size": size}
    write_durably(_path(state, kept, key), canonical_bytes(members))
    return _layer(state, digest, size)


def _layer(state: StateFolder, digest: Digest, size: int) -> Layer:
    return Layer(digest=digest, size=size, read=lambda: state.blobs.chunks(digest))


def _path(state: StateFolder, kept: Kept, key: Digest) -> Path:
    return state.images / f"{kept}-{key.removeprefix(PREFIX)}.json"
