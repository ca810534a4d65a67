"""Is there an engine? Where it may be, in order, and why the others do not do.

Order: `DOCKER_HOST`, the Docker context (where the user chose, nothing else counts), the system's
socket, the user's rootless one, the engine that `harness setup` started.
Refuses: TCP to another host without TLS. Who reads such a connection has the project's files, and
who joins it has the engine's host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import EngineUnreachableError, InputError, Issue
from harness.execution.engine.tls import TlsFiles
from harness.execution.host.contexts import config_folder, find_tls, read_context
from harness.execution.host.daemon import own_socket
from harness.execution.host.ping import MIN_API, Reply, check_address, ping
from harness.store.state import StateFolder

SYSTEM_SOCKET = "unix:///var/run/docker.sock"

_OLDEST = ".".join(str(number) for number in MIN_API)
_REASONS: Mapping[str, tuple[str, str]] = {
    "absent": ("there is no socket", ""),
    "denied": (
        "this user may not use it",
        "ask an administrator to add you to the group docker and log in again, or run one rootless",
    ),
    "silent": ("nobody answers", "start it, or look into its log"),
    "unverified": (
        "TLS could not verify one of the two ends",
        "check ca.pem, cert.pem and key.pem, and that the engine's certificate names this address",
    ),
    "other": ("what answers is not a Docker Engine", "correct the address"),
    "too-old": (f"its API is older than {_OLDEST}", "install Docker Engine 20.10 or newer"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAddress:
    """Where an engine is, or may be.

    Attributes:
        url: `unix:///path` or `tcp://host:port`.
        origin: how we know of it, for people.
        tls: what both ends prove themselves with; None without TLS.
    """

    url: str
    origin: str
    tls: TlsFiles | None = None


def engine_candidates(
    environment: Mapping[str, str], state: StateFolder
) -> tuple[EngineAddress, ...]:
    """Return the addresses to try, in order.

    Raises:
        InputError: the address that the user chose can't be used.
    """
    chosen = _chosen(environment)
    if chosen is not None:
        return (chosen,)
    found = [EngineAddress(url=SYSTEM_SOCKET, origin="the system's engine")]
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        url = f"unix://{runtime}/docker.sock"
        found.append(EngineAddress(url=url, origin="your rootless engine"))
    found.append(EngineAddress(url=f"unix://{own_socket(state)}", origin="the harness's engine"))
    return tuple(found)


def _chosen(environment: Mapping[str, str]) -> EngineAddress | None:
    """Return the engine that the user chose; None when the choice is ours."""
    named = environment.get("DOCKER_HOST", "")
    if named:
        tls = None
        if named.startswith("tcp:") and environment.get("DOCKER_TLS_VERIFY"):
            folder = environment.get("DOCKER_CERT_PATH")
            tls = find_tls(Path(folder) if folder else config_folder(environment) or Path())
        return _checked(EngineAddress(url=named, origin="DOCKER_HOST", tls=tls))
    context = read_context(environment)
    if context is None:
        return None
    origin = f"Docker context {context.name}"
    return _checked(
        EngineAddress(url=context.host or SYSTEM_SOCKET, origin=origin, tls=context.tls)
    )


def _checked(address: EngineAddress) -> EngineAddress:
    """Refuse an address that could be used only at somebody's risk, or not at all."""
    if address.url.startswith("ssh:"):
        raise InputError(
            f"{address.origin}: ssh:// is not spoken here, got {address.url!r:.100}",
            hint="forward the engine's socket: ssh -nNT -L FOLDER/docker.sock:/var/run/docker.sock"
            " HOST, and set DOCKER_HOST=unix://FOLDER/docker.sock",
        )
    host = urlsplit(check_address(address.url)).hostname
    if address.url.startswith("tcp:") and address.tls is None and not _is_loopback(host or ""):
        raise InputError(
            f"{address.origin}: expected TLS to another host, got plain {address.url!r:.100}",
            hint="set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH, or use a context with certificates",
        )
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ask(address: EngineAddress) -> Reply:
    return ping(address.url, address.tls)


def find_engine(
    environment: Mapping[str, str],
    state: StateFolder,
    *,
    ask: Callable[[EngineAddress], Reply] = _ask,
) -> EngineAddress:
    """Return the first address at which a usable engine answers.

    Args:
        environment: of the caller.
        state: of this host.
        ask: pings one address.

    Raises:
        EngineUnreachableError: none does; the issues say why for each.
        InputError: the address that the user chose can't be used.
    """
    issues: list[Issue] = []
    absent = True
    for candidate in engine_candidates(environment, state):
        reply = ask(candidate)
        if reply.answer == "answers":
            return candidate
        absent = absent and reply.answer == "absent"
        reason, fix = _REASONS[reply.answer]
        message = f"{candidate.origin}: {reason}"
        issues.append(Issue(message=message, where=candidate.url, fix=fix))
    if absent and _chosen(environment) is None:
        message, hint = "engine: none on this host", "run `harness setup`: it can install one"
    else:
        message, hint = "engine: none that can be used", "see the reasons above, or `harness setup`"
    raise EngineUnreachableError(message, hint=hint, issues=tuple(issues))
