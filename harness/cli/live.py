"""A worker's output on the terminal while it comes: plain text, never control of the terminal.

Where a CI service reads commands from the log (GitHub Actions, `::command::`), the output is
fenced with a random token, so that a worker cannot speak to the service.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator

import click

from harness.cli.plain import PlainStream
from harness.execution.worker.live import Sink, Stream


@contextlib.contextmanager
def live_output(*, quiet: bool, before: Callable[[], None]) -> Iterator[Sink | None]:
    """Yield a sink that prints both streams, stderr dimmed on a terminal; None when quiet.

    Args:
        quiet: print nothing.
        before: called before anything is printed.
    """
    if quiet:
        yield None
        return
    streams = {"stdout": PlainStream(), "stderr": PlainStream()}

    def show(stream: Stream, data: bytes) -> None:
        before()
        _write(stream, streams[stream].feed(data))

    with _fence():
        yield show
        for name, stream in streams.items():
            _write(name, stream.feed(b"", final=True))


def _write(stream: str, text: str) -> None:
    if not text:
        return
    click.echo(click.style(text, dim=True) if stream == "stderr" else text, nl=False)
    sys.stdout.flush()


@contextlib.contextmanager
def _fence() -> Iterator[None]:
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        click.echo(f"\n::{token}::")
