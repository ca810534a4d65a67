"""The door for host programs: argv lists, a small environment, a deadline, never a shell.

Rules:
    * A program reads nothing from the terminal; what it prints goes to a log file, never into an
      error message.
    * When its time is up, or the caller is interrupted, its whole process group is ended.
    * The environment is made here: a fixed PATH, a plain locale, and what the network needs. The
      umask is fixed too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from harness.errors import HarnessError, SandboxUnavailableError
from harness.store.durable import state_error

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GRACE_SECONDS = 5
UMASK = 0o022
"""Of every program: what a package or an image holds must not depend on the caller's umask."""

_NETWORK_NAMES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")


def host_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a host program sees: fixed values, and the proxies of the caller."""
    kept = {name: value for name, value in environment.items() if name.lower() in _NETWORK_NAMES}
    return {
        "PATH": PATH,
        "LC_ALL": "C.UTF-8",
        "HOME": environment.get("HOME", "/"),
        "DEBIAN_FRONTEND": "noninteractive",
        **kept,
    }


def find_program(name: str) -> str | None:
    """Return the path of a program on the fixed PATH, or None."""
    return shutil.which(name, path=PATH)


def run_command(
    argv: Sequence[str],
    *,
    what: str,
    environment: Mapping[str, str],
    seconds: float,
    log: Path,
    error: type[HarnessError] = SandboxUnavailableError,
) -> None:
    """Run a program to its end; what it prints is added to the log.

    Args:
        argv: program and arguments.
        what: what it does, for messages: lower case, a noun first.
        environment: all it sees.
        seconds: how long it may take.
        log: the file that takes its output.
        error: the class to raise.

    Raises:
        HarnessError: of the class `error`: it can't be started, fails, or is too slow.
        StateError: the log can't be written.
    """
    try:
        stream = log.open("ab")
    except OSError as failure:
        raise state_error(f"write {log.name}", failure) from failure
    with stream:
        stream.write(f"$ {' '.join(argv)}\n".encode("utf-8", "surrogateescape"))
        stream.flush()
        status, _ = _run(
            argv, what=what, environment=environment, seconds=seconds, output=stream, error=error
        )
    if status != 0:
        raise error(f"{what}: expected exit 0, got {status}", hint=f"its output is in {log}")


def read_command(
    argv: Sequence[str], *, what: str, environment: Mapping[str, str], seconds: float
) -> str:
    """Run a program that only looks, and return what it prints.

    Raises:
        SandboxUnavailableError: it can't be started, fails, or is too slow.
    """
    status, output = _run(
        argv,
        what=what,
        environment=environment,
        seconds=seconds,
        output=subprocess.PIPE,
        error=SandboxUnavailableError,
    )
    if status != 0:
        raise SandboxUnavailableError(f"{what}: expected exit 0, got {status}")
    return output.decode("utf-8", "replace")


def _run(
    argv: Sequence[str],
    *,
    what: str,
    environment: Mapping[str, str],
    seconds: float,
    output: IO[bytes] | int,
    error: type[HarnessError],
) -> tuple[int, bytes]:
    try:
        process = subprocess.Popen(  # noqa: S603 - argv lists of this package only, no shell
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL if output == subprocess.PIPE else subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
            umask=UMASK,
        )
    except OSError as failure:
        raise error(f"{what}: {argv[0]}: {failure.strerror}") from failure
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as failure:
        _end_group(process)
        raise error(f"{what}: expected an end within {seconds:.0f} s") from failure
    except BaseException:
        _end_group(process)
        raise
    return process.returncode, printed or b""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the program and all it started: asked first, since apt has to leave its lock."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)
    if process.stdout:
        process.stdout.close()
