"""Is there an engine? Where it may be, in order, and why the others do not do.

Order: `DOCKER_HOST` (then nothing else counts: the user chose), the system's socket, the user's
rootless one, the engine that `harness setup` started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import EngineUnreachableError, Issue
from harness.execution.host.daemon import own_socket
from harness.execution.host.ping import MIN_API, Reply, ping
from harness.store.state import StateFolder

SYSTEM_SOCKET = "unix:///var/run/docker.sock"

_OLDEST = ".".join(str(number) for number in MIN_API)
_REASONS: Mapping[str, tuple[str, str]] = {
    "absent": ("there is no socket", ""),
    "denied": (
        "this user may not use it",
        "ask an administrator to add you to the group docker, or run a rootless engine",
    ),
    "silent": ("nobody answers", "start it, or look into its log"),
    "other": ("what answers is not a Docker Engine", "correct the address"),
    "too-old": (f"its API is older than {_OLDEST}", "install Docker Engine 20.10 or newer"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAddress:
    """Where an engine is, or may be.

    Attributes:
        url: `unix:///path` or `tcp://host:port`.
        origin: how we know of it, for people.
    """

    url: str
    origin: str


def engine_candidates(
    environment: Mapping[str, str], state: StateFolder
) -> tuple[EngineAddress, ...]:
    """Return the addresses to try, in order."""
    named = environment.get("DOCKER_HOST", "")
    if named:
        return (EngineAddress(url=named, origin="DOCKER_HOST"),)
    found = [EngineAddress(url=SYSTEM_SOCKET, origin="the system's engine")]
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        url = f"unix://{runtime}/docker.sock"
        found.append(EngineAddress(url=url, origin="your rootless engine"))
    found.append(EngineAddress(url=f"unix://{own_socket(state)}", origin="the harness's engine"))
    return tuple(found)


def find_engine(
    environment: Mapping[str, str],
    state: StateFolder,
    *,
    ask: Callable[[str], Reply] = ping,
) -> EngineAddress:
    """Return the first address at which a usable engine answers.

    Args:
        environment: of the caller.
        state: of this host.
        ask: pings one address.

    Raises:
        EngineUnreachableError: none does; the issues say why for each.
        InputError: DOCKER_HOST is malformed.
    """
    issues: list[Issue] = []
    absent = True
    for candidate in engine_candidates(environment, state):
        reply = ask(candidate.url)
        if reply.answer == "answers":
            return candidate
        absent = absent and reply.answer == "absent"
        reason, fix = _REASONS[reply.answer]
        message = f"{candidate.origin}: {reason}"
        issues.append(Issue(message=message, where=candidate.url, fix=fix))
    if absent and "DOCKER_HOST" not in environment:
        message, hint = "engine: none on this host", "run `harness setup`: it can install one"
    else:
        message, hint = "engine: none that can be used", "see the reasons above, or `harness setup`"
    raise EngineUnreachableError(message, hint=hint, issues=tuple(issues))
