"""Hands a run's output to whoever looks on, without letting them hold up the run.

Rule: the stored output is complete whatever the onlooker does. A slow one is waited for a
moment; one that stays slow misses pieces, which are counted; one that fails is left alone.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Literal

Stream = Literal["stdout", "stderr"]
Sink = Callable[[Stream, bytes], None]
"""Gets the pieces of both streams in their order, in a thread of its own."""

_PIECES = 64
_PATIENCE_SECONDS = 0.5
_CLOSE_SECONDS = 2.0


class LiveView:
    """A bounded queue and a thread between the run and a sink.

    Args:
        sink: called with each piece; None for nobody.
    """

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self._queue: queue.Queue[tuple[Stream, bytes] | None] = queue.Queue(_PIECES)
        self._patient = True
        self.missed = 0
        self.failed = False
        self._thread = threading.Thread(target=self._show, name="live-view", daemon=True)
        if sink is not None:
            self._thread.start()

    def offer(self, stream: Stream, data: bytes) -> None:
        """Show bytes, or count them as missed. Never raises."""
        if self._sink is None or self.failed:
            return
        try:
            self._queue.put((stream, data), timeout=_PATIENCE_SECONDS if self._patient else 0.001)
            self._patient = True
        except queue.Full:
            self._patient = False
            self.missed += len(data)

    def close(self) -> None:
        """Wait a moment until all that is queued was shown. Never raises."""
        if self._sink is None:
            return
        try:
            self._queue.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _show(self) -> None:
        while (piece := self._queue.get()) is not None:
            if self._sink is None or self.failed:
                continue
            try:
                self._sink(*piece)
            except Exception:  # noqa: BLE001 - an onlooker's fault is never the run's
                self.failed = True
