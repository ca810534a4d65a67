"""Run: spend the grant, then perform the plan's operations in their order.

Order, each step durable before the next: decide, check every image and snapshot, hold the run,
append the intent (it spends the nonce), perform each operation, remove the run's folder.

An operation whose needs did not all pass is skipped. When the run is asked to stop, what has not
begun ends the same way as what was going on; when a worker can't be made, the rest is not tried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, InputError
from harness.execution.engine.fitness import check_limits
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.live import Sink
from harness.execution.worker.operation import StopReason, StopRequest, asked_strategy
from harness.execution.worker.strategy import check_strategy
from harness.execution.worker.sweep import claim_run
from harness.flows.engine import open_engine
from harness.flows.gates import OpenGate, SealedOperation, decide_plan_gate, open_plan_gate
from harness.flows.live_log import LIVE_FILE, LiveLog
from harness.flows.lookup import pick_exact_plan
from harness.flows.operation import Ended, RunInHand, Tell, append_end, perform
from harness.flows.session import Session
from harness.flows.worker_identity import worker_owner
from harness.governance.grants import guard_grant
from harness.model.approval import Approved
from harness.model.digest import Digest, digest_of, short
from harness.model.outcome import EXIT_CODES, Outcome, OutcomeKind, worst_kind
from harness.model.plan import Plan
from harness.store.durable import remove_folder, state_error
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

CANCEL_FILE = "cancel"
"""In a run's folder: somebody asks its controller to end it."""

_STOPPED: dict[StopReason, OutcomeKind] = {"interrupt": "interrupted", "cancel": "cancelled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One finished run.

    Attributes:
        plan: what ran.
        operations: how each one ended, in the plan's order.
        problems: what went wrong beside the run; none of it is a verdict.
    """

    plan: Plan
    operations: tuple[Ended, ...]
    problems: tuple[str, ...]

    @property
    def kind(self) -> OutcomeKind:
        """Return the worst kind of its operations."""
        return worst_kind(item.outcome.kind for item in self.operations)

    @property
    def exit_code(self) -> int:
        """Return the command's exit code for this run."""
        return EXIT_CODES[self.kind]


def run_plan(
    session: Session, digest: Digest, *, sink: Sink | None, stop: StopRequest, tell: Tell
) -> Ran:
    """Run one approved plan, once.

    Args:
        session: host and project.
        digest: full plan hash.
        sink: gets the output while it comes.
        stop: a request to end.
        tell: is told what happens now.

    Raises:
        InputError: no such plan of this project.
        AuthorityError: it is not approved, or its grant is spent.
        VerificationError: a snapshot or an image is not what was sealed.
        SandboxUnavailableError: no engine, no image, or a worker could not be made; when the
            grant was spent by then, the ledger says so.
        ContainmentError: an operation ended, and what it left can't be read safely.
        StateError: the state folder can't take it.
    """
    entries = session.ledger.entries()
    if pick_exact_plan(entries, session.project.id, digest) is None:
        raise InputError(
            f"hash: no plan of this project has {short(digest)}",
            hint="`harness plan list` shows them; `harness seal RECIPE` makes one",
        )
    gate = open_plan_gate(session, digest)
    approved = decide_plan_gate(session, entries, gate)
    tell("checking the sealed files")
    run = RunInHand(
        session=session,
        plan=approved.value,
        engine=open_engine(session.host),
        views={
            item.name: SnapshotView(session.state, item.seal.snapshot) for item in gate.operations
        },
        folder=session.state.run(approved.value.run),
    )
    _check_what_was_sealed(run, gate.operations)
    with _claimed(run):
        _spend(run, gate, approved, seen=len(entries))
        stop.watch(run.folder / CANCEL_FILE)
        try:
            with LiveLog(run.folder / LIVE_FILE, sink) as live:
                ended = _perform_all(run, gate.operations, live=live, stop=stop, tell=tell)
        finally:
            problems = _remove_run_folder(run.folder)
    return Ran(plan=run.plan, operations=ended, problems=problems)


def _check_what_was_sealed(run: RunInHand, operations: Sequence[SealedOperation]) -> None:
    """Check engine, images and snapshots once, before the grant is spent."""
    info = run.engine.info()
    check_limits(info)
    for item in operations:
        check_strategy(info, asked_strategy(item.seal), run.session.state.root, worker_owner())
    for image in {item.seal.image.image_id for item in operations}:
        run.engine.image(image)
    for view in {item.seal.snapshot: run.views[item.name] for item in operations}.values():
        view.verify()


@contextlib.contextmanager
def _claimed(run: RunInHand) -> Iterator[None]:
    """Hold the run as its controller; no sweep can come between its folder and its lock."""
    with contextlib.ExitStack() as held:
        with hold_runs(run.session.state):
            try:
                run.folder.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise state_error("make a run's folder", error) from error
            held.enter_context(claim_run(run.folder))
        yield


def hold_runs(state: StateFolder) -> AbstractContextManager[None]:
    """Hold the folder of all runs for a moment, to add one or to sweep dead ones."""
    busy = "runs: another command sweeps them"
    return hold_lock(state.root / "runs.lock", wait_seconds=60, busy=busy)


def _spend(run: RunInHand, gate: OpenGate, approved: Approved[Plan], *, seen: int) -> None:
    plan = run.plan
    run.session.ledger.append(
        "run",
        "intent",
        project=run.session.project.id,
        body={
            "run": plan.run,
            "plan": plan.digest,
            "nonce": plan.nonce,
            "approvals": [digest_of(item.statement) for item in approved.approvals],
            "operations": [item.name for item in gate.operations],
        },
        check=guard_grant(gate.terms, seen=seen),
    )


def _perform_all(
    run: RunInHand,
    operations: Sequence[SealedOperation],
    *,
    live: LiveLog,
    stop: StopRequest,
    tell: Tell,
) -> tuple[Ended, ...]:
    ended: dict[str, Ended] = {}
    several = len(operations) > 1
    for number, operation in enumerate(operations):
        reason = _why_not(operation, ended, stop)
        if reason is not None:
            append_end(run.session, run.plan, operation.name, reason)
            ended[operation.name] = Ended(name=operation.name, outcome=reason)
            continue

        live.begin(operation.name)

        def say(text: str, name: str = operation.name) -> None:
            tell(f"{name}: {text}" if several else text)

        try:
            ended[operation.name] = perform(
                run, operation, number=number, sink=live.show, stop=stop, tell=say
            )
        except HarnessError as error:
            cause = Outcome(kind="infra-failure", cause=f"not begun after {error.code}")
            for later in operations[number + 1 :]:
                append_end(run.session, run.plan, later.name, cause)
            raise
    return tuple(ended.values())


def _why_not(
    operation: SealedOperation, ended: dict[str, Ended], stop: StopRequest
) -> Outcome | None:
    """Return how an operation ends that must not begin; None when it may."""
    if ended and stop.reason is not None:
        return Outcome(kind=_STOPPED[stop.reason], cause="before it began")
    for name in operation.needs:
        if ended[name].outcome.kind != "passed":
            return Outcome(kind="skipped", cause=f"needs {name}")
    return None


def _remove_run_folder(folder: Path) -> tuple[str, ...]:
    """Remove the run's folder, unless an operation left something: the sweep goes by it."""
    if any(item.is_dir() for item in folder.iterdir()):
        return ()
    try:
        remove_folder(folder)
    except HarnessError as error:
        return (f"cleanup: {error.message}",)
    return ()
