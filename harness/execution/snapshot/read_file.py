"""Reading one file of a live project: what comes out is what was there at one moment, or an error.

Rules:
    * `lstat`, open without following or waiting, compare, read, compare again.
    * Never more bytes than were announced: a file that grows is a file that changed.
    * A file that changes while it is read is read again, a few times.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import InputError
from harness.execution.snapshot.facts import facts_of
from harness.model.digest import PREFIX, Digest
from harness.model.relpath import show
from harness.store.handles import take_file_at

ATTEMPTS = 4
CHUNK = 1 << 20

# What the kernel answers when a name stopped being what `lstat` saw.
_SWAPPED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE, errno.EINVAL, errno.ENXIO)


class MovedError(Exception):
    """Something changed between two looks at it; look again. Never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file held.

    Attributes:
        found: its facts, the same before and after.
        digest: of the content; empty when the reader stopped at `secret`.
        secret: why it must stay out, or empty.
    """

    found: os.stat_result
    digest: Digest
    secret: str = ""


def read_once(
    name: bytes,
    folder_fd: int,
    expected: os.stat_result,
    *,
    judge: Callable[[bytes], str] | None = None,
    sink: Callable[[bytes], object] | None = None,
) -> Reading:
    """Read and hash a regular file.

    Args:
        name: its name.
        folder_fd: the folder that holds it.
        expected: what `lstat` returned for it.
        judge: gets the first bytes; a reason that it returns ends the reading.
        sink: gets every byte.

    Raises:
        MovedError: it is another file by now, or changed while it was read.
        OSError: it can't be read.
    """
    try:
        descriptor, before = take_file_at(name, folder_fd, expected)
        try:
            digest, secret = _read(descriptor, before.st_size, judge=judge, sink=sink)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _SWAPPED:
            raise MovedError from error
        raise
    if facts_of(before) != facts_of(after):
        raise MovedError
    return Reading(found=after, digest=digest, secret=secret)


def _read(
    descriptor: int,
    size: int,
    *,
    judge: Callable[[bytes], str] | None,
    sink: Callable[[bytes], object] | None,
) -> tuple[Digest, str]:
    """Return the digest of a file of a known size, or why it was not read to its end."""
    hasher, left = hashlib.sha256(), size
    while True:
        chunk = os.read(descriptor, min(CHUNK, left + 1))  # one more: a grown file is noticed
        if judge and left == size:
            secret = judge(chunk)
            if secret:
                return Digest(""), secret
        if len(chunk) > left or (left and not chunk):
            raise MovedError
        hasher.update(chunk)
        if sink and chunk:
            sink(chunk)
        left -= len(chunk)
        if not left:
            return Digest(PREFIX + hasher.hexdigest()), ""


def keeps_changing(path: bytes) -> InputError:
    """Return the error for something that no attempt found at rest."""
    return InputError(
        f"{show(path) or 'project'}: keeps changing while it is read",
        hint="wait until nothing writes to the project, then give the same command again",
    )


def is_swap(error: OSError) -> bool:
    """Tell whether an error means that a name stopped being what `lstat` saw."""
    return error.errno in _SWAPPED
