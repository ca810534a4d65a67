"""The engine's socket, where the members of its group can reach it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def open_to_its_group(url: str) -> Iterator[Path]:
    """Yield the socket of an engine at a path that its group can reach.

    An engine that `harness setup` started for root has it in a folder of root's own; a second name
    beside that folder, for the block, stands for the system engine that a group would be given.
    """
    socket = Path(url.removeprefix("unix://")).resolve()
    if socket.parent.stat().st_mode & 0o001:
        yield socket
        return
    second = socket.parent.parent / f"harness-test-{os.getpid()}.sock"
    second.hardlink_to(socket)
    try:
        yield second
    finally:
        second.unlink()
