"""Ctrl-C once ends a run gracefully; twice leaves at once, and the next start cleans up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

import click

from harness.execution.worker.operation import StopRequest


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a request to stop for the block; a second one interrupts."""
    stop = StopRequest()

    def on_signal(number: int, _: FrameType | None) -> None:
        if stop.reason is not None:
            raise KeyboardInterrupt
        stop.ask("interrupt" if number == signal.SIGINT else "cancel")
        click.echo("stopping; once more to leave at once", err=True)

    earlier = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
