"""Begin work on a project: settle what a killed command left behind, then hand out the session.

Three things can be left: an apply whose process died (its journal says how far it came), a run
whose controller died (its intent stands on the ledger without an end), and a restore that is not on
the ledger yet. All are settled before anything new begins, and the same command can then be given
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import EngineUnreachableError, HarnessError
from harness.execution.apply.journal import find_pending
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, ImageEngine
from harness.execution.worker.sweep import controller_lives, is_owned, state_id, sweep
from harness.execution.worker.workspace import remove_workspace
from harness.flows.engine import open_engine
from harness.flows.gates import load_plan
from harness.flows.history import list_runs
from harness.flows.operation import append_end
from harness.flows.restored import settle_restore
from harness.flows.run import hold_runs
from harness.flows.session import Host, Session, open_session
from harness.model.outcome import Outcome
from harness.store.durable import remove_folder

INTERRUPTED = Outcome(kind="interrupted", cause="its controller died")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What was settled.

    Attributes:
        runs: ids of runs that are now recorded as interrupted.
        apply: what became of an apply that was under way; empty when there was none.
        restore: that the state was restored from a backup, when the ledger did not say so yet.
        problems: what could not be removed; the next command tries again.
    """

    runs: tuple[str, ...] = ()
    apply: str = ""
    restore: str = ""
    problems: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return what a person should know, a line each."""
        told = [f"run {run}: its controller died; recorded as interrupted" for run in self.runs]
        told += [text for text in (self.restore, self.apply) if text]
        return told + [f"left over: {problem}" for problem in self.problems]


def begin_work(start: Path) -> tuple[Session, Settled]:
    """Open a project for a command that changes something.

    Raises:
        InputError: there is no project here.
        VerificationError: an apply died half-way and somebody changed the project since.
        StateError: the state folder can't be used.
    """
    session = open_session(start)
    restored = settle_restore(session.host)
    applied = _settle_apply(session)
    runs, problems = settle_runs(session)
    return session, Settled(runs=runs, apply=applied, restore=restored, problems=problems)


def _settle_apply(session: Session) -> str:
    if find_pending(session.state.project(session.project.id)) is None:
        return ""
    from harness.flows.apply import settle_apply  # noqa: PLC0415 - slow to import, and seldom so

    return settle_apply(session)


def settle_runs(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Record runs of dead controllers as interrupted, and remove what they left.

    Returns:
        Ids of the runs recorded now, and what could not be removed.
    """
    recorded = []
    for run in list_runs(session.ledger.entries(), session.project.id):
        if run.is_over or controller_lives(session.state.run(run.run)):
            continue
        plan, _ = load_plan(session, run.plan)
        for operation in run.operations:
            if not operation.finished:
                append_end(session, plan, operation.name, INTERRUPTED)
        recorded.append(run.run)
    return tuple(recorded), _sweep_folders(session.host)


def _sweep_folders(host: Host) -> tuple[str, ...]:
    """Sweep the engine and the folders of dead runs, of any project of this state folder."""
    with hold_runs(host.state):
        return _sweep_held(host)


def _sweep_held(host: Host) -> tuple[str, ...]:
    dead = [
        folder
        for folder in (host.state.root / "runs").iterdir()
        if folder.is_dir() and not controller_lives(folder)
    ]
    if not dead:
        return ()
    state = state_id(host.state.root)
    try:
        engine = open_engine(host)
        swept = sweep(engine, state, lambda run: controller_lives(host.state.run(run)))
        left = engine.owned(state)
    except EngineUnreachableError:
        return tuple(f"run {folder.name}: no engine answers to sweep it" for folder in dead)
    problems = list(swept.problems)
    for folder in (folder for folder in dead if not is_owned(left, folder.name)):
        try:
            _remove_run(engine, folder, state)
        except HarnessError as error:
            problems.append(f"run {folder.name}: {error.message}")
    return tuple(problems)


def _remove_run(engine: ImageEngine, folder: Path, state: str) -> None:
    images = engine.list_images("harness.image")
    for workspace in (path for path in folder.glob("*/workspace") if images):
        remove_workspace(
            engine,
            workspace,
            image_id=images[0].image_id,
            labels={LABEL_RUN: folder.name, LABEL_STATE: state},
        )
    remove_folder(folder)
