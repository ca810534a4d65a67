"""Begin work on a project: settle what a killed command left behind, then hand out the session.

Two things can be left: an apply whose process died (its journal says how far it came), and a run
whose controller died (its intent stands on the ledger without an end). Both are settled before
anything new begins, and the same command can then be given again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import EngineUnreachableError, HarnessError
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, ImageEngine
from harness.execution.worker.sweep import controller_lives, is_owned, state_id, sweep
from harness.execution.worker.workspace import remove_workspace
from harness.flows.apply import settle_apply
from harness.flows.engine import open_engine
from harness.flows.gates import load_plan
from harness.flows.run import append_run_end, hold_runs
from harness.flows.session import Host, Session, open_session
from harness.model.entry import Entry
from harness.model.outcome import Outcome
from harness.store.durable import remove_folder

INTERRUPTED = Outcome(kind="interrupted", cause="its controller died")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What was settled.

    Attributes:
        runs: ids of runs that are now recorded as interrupted.
        apply: what became of an apply that was under way; empty when there was none.
        problems: what could not be removed; the next command tries again.
    """

    runs: tuple[str, ...] = ()
    apply: str = ""
    problems: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return what a person should know, a line each."""
        told = [f"run {run}: its controller died; recorded as interrupted" for run in self.runs]
        if self.apply:
            told.append(self.apply)
        return told + [f"left over: {problem}" for problem in self.problems]


def begin_work(start: Path) -> tuple[Session, Settled]:
    """Open a project for a command that changes something.

    Raises:
        InputError: there is no project here.
        VerificationError: an apply died half-way and somebody changed the project since.
        StateError: the state folder can't be used.
    """
    session = open_session(start)
    applied = settle_apply(session)
    runs, problems = settle_runs(session)
    return session, Settled(runs=runs, apply=applied, problems=problems)


def settle_runs(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Record runs of dead controllers as interrupted, and remove what they left.

    Returns:
        Ids of the runs recorded now, and what could not be removed.
    """
    open_runs = _runs_without_end(session.ledger.entries(), session.project.id)
    recorded = []
    for run, entry in open_runs.items():
        if controller_lives(session.state.run(run)):
            continue
        plan, _ = load_plan(session, entry.body["plan"])
        append_run_end(session, plan, outcome=INTERRUPTED, record="", wall_ms=0)
        recorded.append(run)
    return tuple(recorded), _sweep_folders(session.host)


def _runs_without_end(entries: list[Entry], project: str) -> dict[str, Entry]:
    begun = {
        entry.body["run"]: entry
        for entry in entries
        if entry.verb == "run" and entry.phase == "intent" and entry.project == project
    }
    for entry in entries:
        if entry.verb == "run" and entry.phase == "done":
            begun.pop(entry.body["run"], None)
    return begun


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
    workspace = folder / "workspace"
    if workspace.exists():
        images = engine.list_images("harness.image")
        if images:
            remove_workspace(
                engine,
                workspace,
                image_id=images[0].image_id,
                labels={LABEL_RUN: folder.name, LABEL_STATE: state},
            )
    remove_folder(folder)
