"""Ctrl-C during a run: the run is ended and recorded, then the caller is interrupted."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from harness.execution.worker.operation import StopRequest


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[StopRequest]:
    """Turn a first Ctrl-C into a request to stop; it is raised when the block has ended.

    A second one interrupts at once. A program that handles SIGINT itself, or that runs this outside
    its main thread, keeps its own ways.

    Raises:
        KeyboardInterrupt: there was a Ctrl-C.
    """
    stop = StopRequest()
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield stop
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.reason is not None:
            signal.default_int_handler(number, frame)
        stop.ask("interrupt")

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
