"""Remove what a killed controller left on the engine, and nothing else.

Rules: only what carries our label and this state folder's id; only runs whose controller is
dead. A controller holds a lock in its run's folder for as long as it lives; the kernel frees the
lock with the process, so a reused pid fools nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.execution.engine.port import Engine, Owned
from harness.model.digest import digest_of
from harness.store.durable import state_error
from harness.store.lock import hold_lock

CONTROLLER_LOCK = "controller.lock"
_ID_DIGITS = 32


def state_id(root: Path) -> str:
    """Return what tells one state folder from another on a shared engine: path and inode.

    Raises:
        StateError: the folder is not there.
    """
    try:
        inode = root.stat().st_ino
    except OSError as error:
        raise state_error("identify", error) from error
    text = os.fsencode(root.absolute()) + b"\0%d" % inode
    return digest_of(text).removeprefix("sha256:")[:_ID_DIGITS]


@contextlib.contextmanager
def claim_run(folder: Path) -> Iterator[None]:
    """Hold a run as its controller, from before its first container until after its last.

    Args:
        folder: the run's folder.

    Raises:
        StateError: another process holds it.
    """
    busy = f"run {folder.name}: another controller holds it"
    with hold_lock(folder / CONTROLLER_LOCK, wait_seconds=0, busy=busy):
        yield


def controller_lives(folder: Path) -> bool:
    """Tell whether a process holds a run. A run without a folder or a lock has none.

    Raises:
        StateError: the lock can't be looked at, so nobody can tell.
    """
    try:
        descriptor = os.open(folder / CONTROLLER_LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise state_error("look at a run's lock", error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise state_error("look at a run's lock", error) from error
    else:
        return False
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep removed.

    Attributes:
        runs: ids of the runs whose controller is dead and that left something.
        containers: ids of the containers removed.
        volumes: names of the volumes removed.
        problems: what could not be removed, and why; the next sweep tries again.
    """

    runs: tuple[str, ...]
    containers: tuple[str, ...]
    volumes: tuple[str, ...]
    problems: tuple[str, ...]


def is_owned(owned: Owned, run: str) -> bool:
    """Tell whether anything of a run is left on the engine."""
    return run in owned.containers.values() or run in owned.volumes.values()


def sweep(engine: Engine, state: str, lives: Callable[[str], bool]) -> Swept:
    """Remove the containers and volumes of dead controllers.

    Args:
        engine: where to look.
        state: our state folder's id.
        lives: tells by run id whether its controller lives; see `controller_lives`.

    Raises:
        EngineUnreachableError: nobody answers.
        SandboxUnavailableError: the engine does not list what it has.
        StateError: nobody can tell whether a controller lives.
    """
    owned = engine.owned(state)
    runs = {*owned.containers.values(), *owned.volumes.values()}
    dead = {run for run in runs if not lives(run)}
    containers = [name for name, run in owned.containers.items() if run in dead]
    volumes = [name for name, run in owned.volumes.items() if run in dead]
    problems: list[str] = []
    # A volume goes only after the containers that use it.
    gone = _remove_each(engine.remove, containers, problems)
    gone_volumes = _remove_each(engine.remove_volume, volumes, problems)
    return Swept(
        runs=tuple(sorted(dead)), containers=gone, volumes=gone_volumes, problems=tuple(problems)
    )


def _remove_each(
    remove: Callable[[str], None], names: list[str], problems: list[str]
) -> tuple[str, ...]:
    gone: list[str] = []
    for name in names:
        try:
            remove(name)
        except HarnessError as error:
            problems.append(f"{name}: {error}")
        else:
            gone.append(name)
    return tuple(gone)
