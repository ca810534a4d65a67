"""One holder at a time, across processes: `flock` on a file, with a deadline."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError
from harness.store.durable import state_error

POLL_SECONDS = 0.02


@contextlib.contextmanager
def hold_lock(path: Path, *, wait_seconds: float, busy: str) -> Iterator[None]:
    """Hold an exclusive lock for the block; the kernel frees it when the process dies.

    Args:
        path: the lock file; made when missing, never removed.
        wait_seconds: how long to wait for another holder.
        busy: what to tell the user when the other holder does not let go.

    Raises:
        StateError: another process holds it until the deadline, or it can't be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise state_error(f"lock {path.name}", error) from error
    try:
        acquire_lock(descriptor, wait_seconds=wait_seconds, busy=busy)
        yield
    finally:
        os.close(descriptor)


def acquire_lock(descriptor: int, *, wait_seconds: float, busy: str) -> None:
    """Lock an open file or folder; closing the descriptor frees it.

    Raises:
        StateError: another process holds it until the deadline, or it can't be locked.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise state_error("lock", error) from error
            if time.monotonic() >= deadline:
                raise StateError(busy, hint="wait for the other command to end") from error
            time.sleep(POLL_SECONDS)
        else:
            return
