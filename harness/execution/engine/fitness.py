"""Is an engine fit for workers? Only when it enforces every limit that a worker gets. Pure.

An engine that can't enforce a limit takes the request all the same and drops the limit with a
warning. It says beforehand that it will: that is asked here, before an approval is spent on it.
What was really made is read back from each container besides (`spec.check_read_back`).

Refuses: to run with fewer limits. A rootless engine can have them all, where the host uses control
groups version 2 and hands their controllers to users (docs/how-to/who-may-run-it.md).
"""

from __future__ import annotations

from harness.errors import SandboxUnavailableError
from harness.execution.engine.port import EngineInfo

_DELEGATE = (
    "let systemd hand the controllers cpu, memory and pids to users, or use an engine that root "
    "runs; docs/how-to/who-may-run-it.md says how"
)
_UNIFIED = (
    "start the host with control groups version 2, or use an engine that root runs; a rootless "
    "engine has no limits on version 1"
)
_KERNEL = "its kernel or its control groups lack them; `docker info` warns of each"


def check_limits(info: EngineInfo) -> None:
    """Check that an engine can enforce the limits of a worker.

    Raises:
        SandboxUnavailableError: it can't; all that are missing are named.
    """
    if not info.missing_limits:
        return
    whose = "the rootless engine" if info.rootless else "the engine"
    *others, last = info.missing_limits
    names = f"{', '.join(others)} and {last}" if others else last
    raise SandboxUnavailableError(
        f"engine: {whose} can't limit {names} on this host, and no worker runs without limits",
        hint=_hint(info),
    )


def _hint(info: EngineInfo) -> str:
    if not info.rootless:
        return _KERNEL
    return _DELEGATE if info.cgroup_version == 2 else _UNIFIED  # noqa: PLR2004 - a version
