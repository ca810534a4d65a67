"""A run that another process holds: follow its output, or ask its controller to end it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from harness.errors import InputError, StateError
from harness.execution.worker.protocol import Frame
from harness.execution.worker.sweep import controller_lives
from harness.flows.history import RunSummary, list_runs
from harness.flows.live_log import LIVE_FILE, follow_live_log
from harness.flows.lookup import find_run
from harness.flows.run import CANCEL_FILE
from harness.flows.session import Session
from harness.store.durable import state_error

CANCEL_SECONDS = 60
"""How long a cancel waits: the grace, init's report, the import and the removal of one worker."""

_POLL_SECONDS = 0.1


def find_live_run(session: Session, given: str) -> RunSummary:
    """Find a run that goes on.

    Raises:
        InputError: there is none, or it is over.
    """
    run = find_run(session.ledger.entries(), session.project.id, given)
    if run.is_over:
        raise InputError(
            f"run {run.run}: is over; it ended as {run.outcome}",
            hint=f"`harness runs show {run.run}` says more",
        )
    return run


def follow_run(session: Session, run: RunSummary) -> Iterator[Frame]:
    """Yield a live run's output from its beginning until its controller is gone.

    Raises:
        StateError: its live log can't be read.
    """
    folder = session.state.run(run.run)
    return follow_live_log(folder / LIVE_FILE, lambda: controller_lives(folder))


def cancel_run(session: Session, run: RunSummary) -> RunSummary:
    """Ask a live run's controller to end it, and wait until it has.

    Returns:
        The run as it ended.

    Raises:
        InputError: its controller is dead; the next command that works on the project settles it.
        StateError: it can't be asked, or does not end in time.
    """
    folder = session.state.run(run.run)
    if not controller_lives(folder):
        raise InputError(
            f"run {run.run}: its controller died",
            hint="the next `harness seal` or `harness run` records it as interrupted",
        )
    try:
        os.close(os.open(folder / CANCEL_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:
        pass  # it ended meanwhile
    except OSError as error:
        raise state_error("ask a run to end", error) from error
    deadline = time.monotonic() + CANCEL_SECONDS
    while controller_lives(folder):
        if time.monotonic() > deadline:
            raise StateError(
                f"run {run.run}: was asked to end, and goes on after {CANCEL_SECONDS} seconds",
                hint="look at its controller; killing it is safe, the next command cleans up",
            )
        time.sleep(_POLL_SECONDS)
    found = list_runs(session.ledger.entries(), session.project.id)
    return next(item for item in found if item.run == run.run)
