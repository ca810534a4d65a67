"""Whose the files are that a worker works on: the caller's, or nobody's when the caller is root.

A worker runs as that user where the engine can (`harness.execution.engine.ids`). Never part of a
seal: the same plan runs the same for everybody (DESIGN, section 4).
"""

from __future__ import annotations

import os

from harness.execution.engine.ids import UNPRIVILEGED


def worker_owner() -> tuple[int, int]:
    """Return the numeric uid and gid of snapshot layers and workspaces made by this process."""
    uid = os.geteuid()
    return (UNPRIVILEGED, UNPRIVILEGED) if uid == 0 else (uid, os.getegid())
