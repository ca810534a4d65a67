"""Where a base is made: a folder, a log, and namespaces that are gone when the build ends.

Rule: whatever runs here runs in mount and process namespaces of its own (`unshare`), so that an
ended build, by a SIGKILL too, leaves no mount and no process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SandboxUnavailableError
from harness.execution.host.command import host_environment, run_command

FREE_BYTES = 2 * 1024**3
"""Free space a base needs: two trees and the layer (1.2 GB measured)."""

STEP_SECONDS = 600

_PROGRAMS = {
    "debootstrap": "debootstrap",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "gpgv": "gpgv",
    "tar": "tar",
}
# setpriv: the kernel ends unshare when we die, and unshare what it started.
NAMESPACES = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--ipc", "--uts", "--pid", "--fork", "--kill-child"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where and how a base is made.

    Attributes:
        folder: a folder of its own; the caller removes it.
        log: takes what the programs print.
        environment: of the caller; the proxies are passed on.
        mirror: address of a Debian mirror; empty for debootstrap's own.
        report: is told what happens now.
    """

    folder: Path
    log: Path
    environment: Mapping[str, str]
    mirror: str
    report: Callable[[str], None]

    def run(self, what: str, argv: tuple[str, ...], seconds: float = STEP_SECONDS) -> None:
        """Run one host program.

        Raises:
            SandboxUnavailableError: it fails or is too slow.
            StateError: the log can't be written.
        """
        environment = {**host_environment(self.environment), "PYTHONHASHSEED": "0"}
        run_command(argv, what=what, environment=environment, seconds=seconds, log=self.log)


def check_host(*, uid: int, find: Callable[[str], str | None], free: int) -> None:
    """Check that this host can make a base at all.

    Args:
        uid: effective user id.
        find: returns a program's path, or None.
        free: bytes where it would be made.

    Raises:
        SandboxUnavailableError: not root, a program is missing, or too little free space.
    """
    if uid != 0:
        raise SandboxUnavailableError(
            f"image build: expected user 0 (debootstrap needs chroot), got {uid}",
            hint="ask an administrator to run `harness image build` as root on this host",
        )
    missing = sorted(package for program, package in _PROGRAMS.items() if not find(program))
    if missing:
        raise SandboxUnavailableError(
            f"image build: missing on this host: {', '.join(missing)}",
            hint=f"run `harness setup --images`, or apt-get install {' '.join(missing)}",
        )
    if free < FREE_BYTES:
        raise SandboxUnavailableError(
            f"image build: expected {FREE_BYTES} free bytes in the state folder, got {free}",
            hint="free some disk space, or set HARNESS_STATE to a folder on another disk",
        )


def in_root(tree: Path, argv: tuple[str, ...], *, network: bool = False) -> tuple[str, ...]:
    """Return the command that runs a program of a tree inside it, without network by default."""
    isolation = () if network else ("--net",)
    return (*NAMESPACES, *isolation, f"--mount-proc={tree}/proc", "chroot", str(tree), *argv)
