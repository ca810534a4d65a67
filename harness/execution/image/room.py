"""The room in the state folder where one image is made at a time: a lock, a folder and a log."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.store.durable import state_error
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

BUSY = "image build: another build is at work on this state folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Where one image is made.

    Attributes:
        folder: gone afterwards.
        log: takes what programs print; each build starts it anew.
    """

    folder: Path
    log: Path


@contextlib.contextmanager
def hold_room(state: StateFolder) -> Iterator[Room]:
    """Give a room for the block; first remove what builds that were killed left in it.

    Raises:
        StateError: another build is at work, or the state folder can't be written.
    """
    log = state.images / "build.log"
    with contextlib.ExitStack() as stack:
        stack.enter_context(hold_lock(state.images / "lock", wait_seconds=0, busy=BUSY))
        try:
            for left in state.images.glob("work-*"):
                shutil.rmtree(left)
            log.write_bytes(b"")
            folder = state.images / f"work-{secrets.token_hex(4)}"
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise state_error("prepare a build", error) from error
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Room(folder=folder, log=log)
