"""A sign of life on stderr while something takes time; nothing at all when nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Report = Callable[[str], None]
"""Says what happens now."""


class Working:
    """A spinner with a text; call it to change the text.

    Args:
        say: changes the text.
        stop: takes the spinner away.
    """

    def __init__(self, say: Report, stop: Callable[[], None]) -> None:
        self._say, self._stop = say, stop

    def __call__(self, now: str) -> None:
        """Say what happens now."""
        self._say(now)

    def give_way(self) -> None:
        """Take the spinner away for good: something else is printed from here on."""
        self._stop()


@contextlib.contextmanager
def working(text: str, *, quiet: bool = False) -> Iterator[Working]:
    """Show a spinner with a text for the block, on a terminal only.

    Yields:
        The spinner; on no terminal it does nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield Working(lambda _: None, lambda: None)
        return
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import
    from rich.markup import escape  # noqa: PLC0415

    with Console(stderr=True).status(escape(text)) as status:
        yield Working(lambda now: status.update(escape(now)), status.stop)


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
