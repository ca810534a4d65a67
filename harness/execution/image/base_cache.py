"""The cache of bases: one record per key, and the layer as a blob; a second build skips a minute.

Rule: the record is written after the blob, so that what it names is whole; the blob's digest is
checked again whenever it is read.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import InputError, VerificationError
from harness.execution.image.archive import Layer
from harness.execution.image.layer import write_tree_layer
from harness.model.canonical import JsonObject, canonical_bytes, parse_canonical
from harness.model.digest import PREFIX, Digest, parse_digest
from harness.store.durable import state_error, write_durably
from harness.store.state import StateFolder

RECORD_KIND = "harness/cached-base/v1"


def cached_layer(state: StateFolder, key: Digest) -> Layer | None:
    """Return the layer of a base, or None when it has to be built.

    Raises:
        VerificationError: the record is not what a build wrote.
        StateError: it can't be read.
    """
    path = _path(state, key)
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


def store_layer(state: StateFolder, key: Digest, tree: Path) -> Layer:
    """Store the layer of a tree under the key of its base.

    Raises:
        StateError: the tree can't be read, or the disk is full.
    """
    with state.blobs.writer() as writer:
        write_tree_layer(tree, writer)
        digest, size = writer.commit(), writer.size
    members: JsonObject = {"_type": RECORD_KIND, "key": key, "layer": digest, "size": size}
    write_durably(_path(state, key), canonical_bytes(members))
    return _layer(state, digest, size)


def _layer(state: StateFolder, digest: Digest, size: int) -> Layer:
    return Layer(digest=digest, size=size, read=lambda: state.blobs.chunks(digest))


def _path(state: StateFolder, key: Digest) -> Path:
    return state.images / f"base-{key.removeprefix(PREFIX)}.json"
