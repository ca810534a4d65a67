"""The first bytes of a file that only grows: read the same whatever is appended meanwhile."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError
from harness.model.digest import PREFIX, Digest
from harness.store.durable import state_error

CHUNK = 1 << 20


def read_prefix(path: Path, length: int) -> Iterator[bytes]:
    """Yield a file's first bytes, in pieces.

    Args:
        path: a regular file; a link is refused.
        length: how many bytes.

    Raises:
        StateError: it can't be read, or has fewer.
    """
    left = length
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as stream:
            while left and (chunk := stream.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
    if left:
        raise StateError(f"state folder: {path.name}: expected {length} bytes, got {length - left}")


def digest_prefix(path: Path, length: int) -> Digest:
    """Hash a file's first bytes.

    Raises:
        StateError: as `read_prefix`.
    """
    seen = hashlib.sha256()
    for chunk in read_prefix(path, length):
        seen.update(chunk)
    return Digest(PREFIX + seen.hexdigest())
