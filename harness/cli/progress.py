"""A sign of life on stderr while something takes time; nothing at all when nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Report = Callable[[str], None]
"""Says what happens now."""


@contextlib.contextmanager
def working(text: str, *, quiet: bool = False) -> Iterator[Report]:
    """Show a spinner with a text for the block, on a terminal only.

    Yields:
        A function that changes the text; on no terminal it does nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import
    from rich.markup import escape  # noqa: PLC0415

    with Console(stderr=True).status(escape(text)) as status:
        yield lambda now: status.update(escape(now))


@contextlib.contextmanager
def narrating(*, quiet: bool = False) -> Iterator[Report]:
    """Show each step on a line of its own as it begins; on a terminal with a spinner.

    Yields:
        A function that announces the next step.
    """
    if quiet:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        yield lambda now: print(f"- {now}", file=sys.stderr, flush=True)  # noqa: T201
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    console = Console(stderr=True)
    with console.status("") as status:

        def announce(now: str) -> None:
            console.print(f"[dim]-[/dim] {escape(now)}")
            status.update(escape(now))

        yield announce
