"""Ends a real process with SIGKILL at a failpoint, in a child of this one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count

from harness.store import failpoints


def kill_at(point: int, work: Callable[[], object]) -> bool:
    """Do work in a child that SIGKILLs itself at a point; tell whether it came that far."""
    child = os.fork()
    if child == 0:
        failpoints._ARMED, failpoints._KILL_AT = True, point
        failpoints._numbers = count(1)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
