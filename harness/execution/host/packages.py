"""Debian packages: what is missing, what an installation would add, what taking it back removes.

Rules: apt is asked first (`--simulate`), so that consent is given to a list of packages, not to a
hope; only what we added is ever removed, and nothing that somebody installed on top of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from harness.errors import AcquisitionError, SandboxUnavailableError
from harness.execution.host.command import host_environment, read_command, run_command

APT_SECONDS = 1200
LOOK_SECONDS = 120

PROGRAMS: Mapping[str, str] = {
    "dockerd": "docker.io",
    "debootstrap": "debootstrap",
    "gpgv": "gpgv",
    "iptables": "iptables",
}
"""Program -> Debian package that has it; dockerd wants iptables even when it may not use it."""

_APT = (
    *("apt-get", "--quiet", "--yes"),
    "--option=Acquire::Retries=3",
    "--option=DPkg::Lock::Timeout=120",
)
"""An archive may have a bad moment, and another apt may be at work: apt.conf(5), in seconds."""
_ADDED = re.compile(r"^Inst (\S+) \(", re.MULTILINE)
_REMOVED = re.compile(r"^(?:Remv|Purg) (\S+) ", re.MULTILINE)


def missing_packages(programs: Iterable[str], find: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the packages of the programs that are not there, sorted."""
    return tuple(sorted({PROGRAMS[program] for program in programs if not find(program)}))


def install_argv(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that installs packages and what they need, and nothing recommended."""
    return (*_APT, "install", "--no-install-recommends", "--no-remove", *packages)


def purge_argv(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that takes packages and their settings away."""
    return (*_APT, "purge", *packages)


def parse_added(simulation: str) -> tuple[str, ...]:
    """Return the packages that a simulated installation adds; upgraded ones are not among them.

    apt prints `Inst NAME (NEW ...)` for an addition and `Inst NAME [OLD] (NEW ...)` for an upgrade.
    """
    return tuple(sorted(_ADDED.findall(simulation)))


def parse_removed(simulation: str) -> tuple[str, ...]:
    """Return the packages that a simulated command takes away."""
    return tuple(sorted(set(_REMOVED.findall(simulation))))


def simulate(argv: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Return what apt would do; needs no rights.

    Raises:
        SandboxUnavailableError: apt refuses.
    """
    return read_command(
        (argv[0], "--simulate", *argv[1:]),
        what="apt-get --simulate",
        environment=host_environment(environment),
        seconds=LOOK_SECONDS,
    )


def refresh(environment: Mapping[str, str], log: Path) -> None:
    """Fetch apt's lists.

    Raises:
        AcquisitionError: the archive can't be reached.
        StateError: the log can't be written.
    """
    _apt((*_APT, "update"), "apt-get update", environment, log)


def install(packages: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
    """Install packages.

    Raises:
        AcquisitionError: apt fails.
        StateError: the log can't be written.
    """
    _apt(install_argv(packages), "apt-get install", environment, log)


def purge(packages: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
    """Take packages away again, where nothing else hangs on them.

    Raises:
        SandboxUnavailableError: something that we did not install would go with them.
        AcquisitionError: apt fails.
        StateError: the log can't be written.
    """
    present = installed(environment)
    ours = tuple(name for name in packages if name in present)
    if not ours:
        return
    argv = purge_argv(ours)
    others = sorted(set(parse_removed(simulate(argv, environment))) - set(ours))
    if others:
        raise SandboxUnavailableError(
            f"packages: {', '.join(others)} would be removed too, and setup did not install them",
            hint="remove those yourself first, or keep the engine",
        )
    _apt(argv, "apt-get purge", environment, log)


def installed(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the names of all packages that dpkg knows as installed or configured.

    Raises:
        SandboxUnavailableError: dpkg does not answer.
    """
    listing = read_command(
        ("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\\n"),
        what="dpkg-query",
        environment=host_environment(environment),
        seconds=LOOK_SECONDS,
    )
    return frozenset(
        line.split()[0] for line in listing.splitlines() if line.endswith(" installed")
    )


def _apt(argv: tuple[str, ...], what: str, environment: Mapping[str, str], log: Path) -> None:
    run_command(
        argv,
        what=what,
        environment=host_environment(environment),
        seconds=APT_SECONDS,
        log=log,
        error=AcquisitionError,
    )
