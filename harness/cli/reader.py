"""When the reader of our output left (`harness ... | head`), there is nobody to report to.

Neither a trace nor a message; and where the exit code is a verdict, it stays the verdict.
"""

from __future__ import annotations

import os
import sys


def let_reader_go() -> None:
    """Send what is still to be written nowhere, so that nothing fails at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
