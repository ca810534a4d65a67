"""An engine of our own, for a host whose init system can't start one.

Rules:
    * Its data, config and log lie in the state folder, its socket in a private folder below /run
      (a socket's path is at most 107 bytes, unix(7)); no bridge, no firewall rule, no forwarding.
    * It is known by its argv, which names our data folder. A process is signalled through a
      handle (pidfd), taken before its argv is read, so that a reused number is never hit.
    * Stopping ends what it started too, and unmounts what it left; another engine is never
      touched.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from harness.errors import SandboxUnavailableError
from harness.execution.host.command import find_program, host_environment, run_command
from harness.execution.host.mounts import file_system_of, mounts_below
from harness.execution.host.ping import ping
from harness.model.digest import digest_of, short
from harness.store.durable import state_error, write_durably
from harness.store.lock import hold_lock
from harness.store.state import MODE, StateFolder

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1
_RUN = Path("/run")


def own_run_folder(state: StateFolder) -> Path:
    """Return the private folder of its sockets; the name follows from the state folder's."""
    return _RUN / f"harness-{short(digest_of(os.fsencode(state.root)))}"


def own_socket(state: StateFolder) -> Path:
    """Return the socket of our own engine, whether or not it runs."""
    return own_run_folder(state) / "docker.sock"


def daemon_argv(state: StateFolder) -> tuple[str, ...]:
    """Return the command of our own engine."""
    run, folder = own_run_folder(state), state.engine
    return (
        "dockerd",
        f"--config-file={folder / 'config.json'}",
        f"--data-root={folder / 'data'}",
        f"--exec-root={run / 'exec'}",
        f"--pidfile={run / 'docker.pid'}",
        f"--host=unix://{own_socket(state)}",
        "--bridge=none",
        "--iptables=false",
        "--ip-forward=false",
        "--ip-masq=false",
    )


def start_own_engine(
    state: StateFolder,
    *,
    environment: Mapping[str, str],
    report: Callable[[str], None],
    seconds: float = START_SECONDS,
) -> str:
    """Start our own engine in the background, unless it answers already.

    Args:
        state: of this host; it holds images and containers from now on.
        environment: of the caller; the proxies are passed on.
        report: is told what happens now.
        seconds: how long it may take to answer.

    Returns:
        Its address.

    Raises:
        SandboxUnavailableError: not root, no dockerd, an unfit file system, or no answer in time.
        StateError: its folders can't be made.
    """
    if os.geteuid() != 0:
        raise SandboxUnavailableError(
            f"engine: expected user 0 to start one, got {os.geteuid()}",
            hint="ask an administrator to start a Docker Engine and to let you use it",
        )
    if not find_program("dockerd"):
        raise SandboxUnavailableError("engine: dockerd is not installed")
    url = f"unix://{own_socket(state)}"
    log = state.engine / "dockerd.log"
    _prepare(state)
    with hold_lock(state.engine / "lock", wait_seconds=seconds, busy="engine: another start waits"):
        if ping(url).answer == "answers":
            return url
        stop_processes(state)
        report("engine: start our own dockerd")
        run_command(
            ("setsid", "--fork", *daemon_argv(state)),
            what="engine start",
            environment=host_environment(environment),
            seconds=seconds,
            log=log,
        )
        _wait_for_answer(state, url, seconds, log)
    return url


def stop_own_engine(state: StateFolder, *, environment: Mapping[str, str]) -> bool:
    """Stop our own engine and all it started; its images stay for the next start.

    Returns:
        Whether there was one.

    Raises:
        SandboxUnavailableError: it, or a mount it left, does not go away.
        StateError: its folder below /run can't be removed.
    """
    run = own_run_folder(state)
    if not state.engine.is_dir() and not run.is_dir():
        return False
    stopped = stop_processes(state)
    for place in (*mounts_below(run), *mounts_below(state.engine)):
        run_command(
            ("umount", "--lazy", str(place)),
            what=f"unmount {place.name}",
            environment=host_environment(environment),
            seconds=STOP_SECONDS,
            log=state.engine / "dockerd.log",
        )
    try:
        if run.is_dir():
            shutil.rmtree(run)
    except OSError as error:
        raise state_error("remove the engine's run folder", error) from error
    return stopped


def remove_own_engine(state: StateFolder, *, environment: Mapping[str, str]) -> bool:
    """Stop our own engine and remove its data: all its images and containers.

    Returns:
        Whether there was anything.

    Raises:
        SandboxUnavailableError: it does not stop.
        StateError: its data can't be removed.
    """
    existed = state.engine.is_dir()
    stop_own_engine(state, environment=environment)
    try:
        if existed:
            shutil.rmtree(state.engine)
    except OSError as error:
        raise state_error("remove the engine's data", error) from error
    return existed


def _prepare(state: StateFolder) -> None:
    found = file_system_of(state.root)
    if found == "overlay":
        raise SandboxUnavailableError(
            "engine data: expected a file system that can hold overlay layers, got overlay",
            hint="set HARNESS_STATE to a folder on a disk or a volume",
        )
    run = own_run_folder(state)
    try:
        state.engine.mkdir(mode=MODE, exist_ok=True)
        run.mkdir(mode=MODE, exist_ok=True)
        if run.stat().st_uid != 0 or run.is_symlink():
            raise SandboxUnavailableError(f"engine: {run} belongs to somebody else")
    except OSError as error:
        raise state_error("prepare an engine", error) from error
    write_durably(state.engine / "config.json", b"{}\n")


def _wait_for_answer(state: StateFolder, url: str, seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    settled = time.monotonic() + 2
    while ping(url).answer != "answers":
        gone = time.monotonic() > settled and not _own_processes(state)
        if gone or time.monotonic() > deadline:
            stop_processes(state)
            what = "ended at once" if gone else f"did not answer within {seconds:.0f} s"
            raise SandboxUnavailableError(
                f"engine: our own dockerd {what}", hint=f"the reason is at the end of {log}"
            )
        time.sleep(_POLL_SECONDS)


def stop_processes(state: StateFolder) -> bool:
    """End our dockerd, then whatever of its children outlived it (containerd, shims).

    Returns:
        Whether a dockerd ran.

    Raises:
        SandboxUnavailableError: one of them does not end.
    """
    daemons = list(_own_processes(state))
    for pid in daemons:
        _end(pid, f"--data-root={state.engine / 'data'}", (signal.SIGTERM, signal.SIGKILL))
    mark = str(own_run_folder(state) / "exec")
    for pid in list(_processes_with(mark)):
        _end(pid, mark, (signal.SIGTERM, signal.SIGKILL))
    return bool(daemons)


def _own_processes(state: StateFolder) -> tuple[int, ...]:
    return tuple(_processes_with(f"--data-root={state.engine / 'data'}"))


def _processes_with(mark: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _has_argument(int(entry.name), mark):
            yield int(entry.name)


def _has_argument(pid: int, mark: str) -> bool:
    """Tell whether a process of root's has an argument that starts with the mark."""
    try:
        if Path(f"/proc/{pid}").stat().st_uid != 0:
            return False
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument.startswith(os.fsencode(mark)) for argument in arguments[1:])


def _end(pid: int, mark: str, signals: tuple[signal.Signals, ...]) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not _has_argument(pid, mark):
            return
        for number in signals:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if select.select([handle], [], [], STOP_SECONDS)[0]:
                return
    finally:
        os.close(handle)
    raise SandboxUnavailableError(f"engine: process {pid} of our own engine does not end")
