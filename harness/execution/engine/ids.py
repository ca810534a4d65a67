"""Which numeric user a worker gets on an engine. Pure.

Rules:
    * The caller's own, so that what a worker leaves on a disk of ours is the caller's.
    * Where that can't be, a fixed unprivileged one; nothing of such a worker may then reach a disk
      of ours but by a copy. Two engines are meant: one that maps ids (rootless, or `userns-remap`),
      for which the same number is another user on this host, or none; and any engine, for a caller
      with a larger id than engines take.

Sources: moby, "uids and gids must be in range 0-2147483647"; user_namespaces(7).
"""

from __future__ import annotations

from harness.execution.engine.port import EngineInfo

UNPRIVILEGED = 65532
"""The id that distroless images call `nonroot`; no account of a Debian system has it, and the
65,536 ids that a mapped engine usually has hold it."""

MAX_ID = 2**31 - 1
"""The largest user or group id that an engine starts a container with."""


def maps_ids(info: EngineInfo) -> bool:
    """Tell whether a number means another user inside this engine's containers than on its host."""
    return info.rootless or any(
        option.startswith("name=userns") for option in info.security_options
    )


def worker_ids(info: EngineInfo, uid: int, gid: int) -> tuple[int, int]:
    """Return the user and group of a worker.

    Args:
        info: the engine.
        uid: the caller's, or the unprivileged one when the caller is root.
        gid: the same for the group.
    """
    if maps_ids(info) or max(uid, gid) > MAX_ID:
        return UNPRIVILEGED, UNPRIVILEGED
    return uid, gid
