"""The three standard streams, when they are not what a command may count on.

- The reader of our output left (`harness ... | head`): there is nobody to report to. Neither a
  trace nor a message; and where the exit code is a verdict, it stays the verdict.
- The output can't be written (a full disk): an operator's matter, and never a verdict.
- A stream was closed before we started: the next file we open would get its number, and what is
  meant for the terminal would be written into that file. So it becomes `/dev/null`.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from harness.errors import StateError


class _Output(io.FileIO):
    """Standard output; a write that fails is an error with a hint, not a fault of ours."""

    def write(self, data: Any, /) -> int:
        """Write bytes.

        Raises:
            BrokenPipeError: the reader left.
            StateError: there is no room, say.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            let_reader_go()
            raise StateError(
                f"output: {error.strerror}", hint="send the output to where there is room for it"
            ) from error


def prepare_streams() -> None:
    """Give every closed stream a `/dev/null`, and stdout the manners of `_Output`."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            send_nowhere(number)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    found = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(1, "wb", closefd=False)),
        encoding=found.encoding,
        errors=found.errors,
        line_buffering=found.isatty(),
    )


def let_reader_go() -> None:
    """Send what is still to be written nowhere, so that nothing fails at the interpreter's end."""
    send_nowhere(1)


def send_nowhere(number: int) -> None:
    """Make a standard stream a `/dev/null`, so that nothing fails on it any more."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
