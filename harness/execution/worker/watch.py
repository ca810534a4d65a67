"""Watches the disk beside a run, in a thread of its own: counting a big tree takes time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Literal, Self

from harness.execution.worker.workspace import FREE_FLOOR, free_bytes, measure

POLL_SECONDS = 0.25
"""Between two counts; a run may overshoot by what it writes in this time and one count."""

Excess = Literal["", "disk", "floor"]


class DiskWatch:
    """Says when an upper layer has grown beyond its limit; use it in a `with` block.

    Args:
        upper: the layer.
        limit: most bytes in it.
    """

    def __init__(self, upper: Path, limit: int) -> None:
        self._upper, self._limit = upper, limit
        self._excess: Excess = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=10)

    @property
    def excess(self) -> Excess:
        """Return `disk` over the limit, `floor` when the disk itself is nearly full, or ``."""
        return self._excess

    def check(self) -> Excess:
        """Count now; once over, it stays so."""
        if not self._excess:
            if measure(self._upper) > self._limit:
                self._excess = "disk"
            elif _free(self._upper) < FREE_FLOOR:
                self._excess = "floor"
        return self._excess

    def _watch(self) -> None:
        pause = POLL_SECONDS
        while not self._excess and not self._done.wait(pause):
            before = time.monotonic()
            self.check()
            # A count is at most a fifth of the time: a big tree must not cost a processor.
            pause = max(POLL_SECONDS, 4 * (time.monotonic() - before))


def _free(folder: Path) -> int:
    try:
        return free_bytes(folder)
    except OSError:
        return FREE_FLOOR
