"""Watches the disk beside a run, in a thread of its own: counting a big tree takes time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Literal, Protocol, Self

from harness.errors import HarnessError
from harness.execution.engine.port import Engine
from harness.execution.worker.workspace import FREE_FLOOR, free_bytes, measure

Excess = Literal["", "disk", "floor"]

_JOIN_SECONDS = 10.0


class Gauge(Protocol):
    """Counts what a run has added to its workspace.

    Attributes:
        name: what it counts, for the record.
        poll_seconds: least time between two counts; a run may overshoot by what it writes in
            this time and one count.
    """

    name: str
    poll_seconds: float

    def used(self) -> int | None:
        """Return the bytes added; None when nobody can tell."""

    def is_floor_reached(self) -> bool:
        """Tell whether the disk itself is nearly full; False when nobody can tell."""


class FolderGauge:
    """Counts an upper layer on a disk of ours.

    Args:
        upper: the layer.
    """

    name = "upper layer"
    poll_seconds = 0.25

    def __init__(self, upper: Path) -> None:
        self._upper = upper

    def used(self) -> int:
        """Return what the layer holds; see `measure`."""
        return measure(self._upper)

    def is_floor_reached(self) -> bool:
        """Tell whether the layer's disk is nearly full."""
        try:
            return free_bytes(self._upper) < FREE_FLOOR
        except OSError:
            return False


class VolumeGauge:
    """Asks an engine for the size of a volume.

    It counts sizes of files only: names, and blocks beyond a file's size, are found when the
    workspace is read back. How full the engine's disk is, no engine tells.

    Args:
        engine: where the volume is.
        volume: its name.
        before: bytes that it held before the run.
    """

    name = "volume"
    poll_seconds = 1.0

    def __init__(self, engine: Engine, volume: str, before: int) -> None:
        self._engine, self._volume, self._before = engine, volume, before

    def used(self) -> int | None:
        """Return by how much the volume grew; None when the engine does not say."""
        try:
            size = self._engine.volume_bytes(self._volume)
        except HarnessError:
            return None
        return None if size is None else max(size - self._before, 0)

    def is_floor_reached(self) -> bool:
        """Return False: no engine says it."""
        return False


class DiskWatch:
    """Says when a run has added more than it may; use it in a `with` block.

    Args:
        gauge: counts.
        limit: most bytes.

    Attributes:
        gauge: as given.
        is_blind: the gauge could not tell, once; then it is not asked again.
    """

    def __init__(self, gauge: Gauge, limit: int) -> None:
        self.gauge, self._limit = gauge, limit
        self._excess: Excess = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)
        self.is_blind = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=_JOIN_SECONDS)

    @property
    def excess(self) -> Excess:
        """Return `disk` over the limit, `floor` when the disk itself is nearly full, or ``."""
        return self._excess

    def check(self) -> Excess:
        """Count now; once over, it stays so."""
        if not self._excess:
            used = self.gauge.used()
            if used is None:
                self.is_blind = True
            elif used > self._limit:
                self._excess = "disk"
            elif self.gauge.is_floor_reached():
                self._excess = "floor"
        return self._excess

    def _watch(self) -> None:
        pause = self.gauge.poll_seconds
        while not (self._excess or self.is_blind or self._done.wait(pause)):
            before = time.monotonic()
            self.check()
            # A count is at most a fifth of the time: a big tree must not cost a processor.
            pause = max(self.gauge.poll_seconds, 4 * (time.monotonic() - before))
