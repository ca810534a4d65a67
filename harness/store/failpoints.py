"""Numbered points at which a test can end the real process with SIGKILL.

Every ledger append, every rename and every engine call passes one; a test over the source shows
that none is missing. In normal use a point costs one look into a module variable.

    HARNESS_FAILPOINT_LOG=FILE    append one line `N NAME` per point passed
    HARNESS_FAILPOINT_KILL=N      SIGKILL at the N-th point passed (from 1)
"""

from __future__ import annotations

import itertools
import os
import signal

_LOG = os.environ.get("HARNESS_FAILPOINT_LOG", "")
_KILL_AT = int(os.environ.get("HARNESS_FAILPOINT_KILL", "") or 0)
_ARMED = bool(_LOG or _KILL_AT)
_numbers = itertools.count(1)


def pass_failpoint(name: str) -> None:
    """Pass the point `name` (dotted, like `ledger.append.write`); may not return in a test."""
    if not _ARMED:
        return
    number = next(_numbers)
    if _LOG:
        with open(_LOG, "a", encoding="utf-8") as log:  # noqa: PTH123 - no Path needed
            log.write(f"{number} {name}\n")
    if number == _KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
