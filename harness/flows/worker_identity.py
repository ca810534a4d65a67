"""Who a worker runs as: the caller, or a fixed unprivileged id when the caller is root.

Never part of a seal: the same plan runs the same for everybody (DESIGN, section 4).
"""

from __future__ import annotations

import os

UNPRIVILEGED = 65532
"""The id that distroless images call `nonroot`; no account of a Debian system has it."""


def worker_owner() -> tuple[int, int]:
    """Return the numeric uid and gid of workers started by this process."""
    uid = os.geteuid()
    return (UNPRIVILEGED, UNPRIVILEGED) if uid == 0 else (uid, os.getegid())
