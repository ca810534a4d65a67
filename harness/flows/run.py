"""Run: spend the grant, run the worker, record what happened, quarantine what changed.

Order, each step durable before the next: decide, check the snapshot, hold the run, append the
intent (it spends the nonce), run, import, append the quarantine, append the end, clean up. A run
that the ledger calls passed has its diff there too, wherever the process died.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import HarnessError, InputError
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, Engine
from harness.execution.quarantine.import_changes import Imported, import_changes
from harness.execution.quarantine.report import MAX_REPORT_BYTES, TestReport, read_report
from harness.execution.quarantine.rules import ImportRules
from harness.execution.snapshot.ignore import IgnoreRules
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.live import Sink
from harness.execution.worker.operation import StopRequest, WorkerResult, operation_from_seal
from harness.execution.worker.run_operation import run_operation
from harness.execution.worker.sweep import claim_run, is_owned, state_id
from harness.execution.worker.workspace import remove_workspace
from harness.flows.engine import open_engine
from harness.flows.gates import OpenGate, decide_plan_gate, open_plan_gate
from harness.flows.history import pick_exact_plan
from harness.flows.session import Session, now_text
from harness.flows.worker_identity import worker_owner
from harness.governance.grants import guard_grant
from harness.model.approval import Approved
from harness.model.changeset import by_products_bytes
from harness.model.digest import Digest, digest_of, short
from harness.model.limits import Limits
from harness.model.outcome import Facts, Outcome, classify_outcome
from harness.model.quarantine_record import QuarantineRecord
from harness.model.recipe import Output
from harness.model.run_record import RunRecord
from harness.model.seal import Plan, Seal
from harness.store.durable import remove_folder, state_error
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

Tell = Callable[[str], None]
"""Says what happens now, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One finished run.

    Attributes:
        record: what happened.
        imported: what it changed; None when the changes could not be read.
        problems: what went wrong beside the run; none of it is a verdict.
    """

    record: RunRecord
    imported: Imported | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A run that may start."""

    session: Session
    approved: Approved[Plan]
    gate: OpenGate
    seen: int
    engine: Engine
    view: SnapshotView
    folder: Path

    @property
    def plan(self) -> Plan:
        return self.approved.value

    @property
    def seal(self) -> Seal:
        return self.gate.seal


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
        VerificationError: the snapshot or the image is not what was sealed.
        SandboxUnavailableError: no engine, no image, or the worker could not be made; when the
            grant was spent by then, the ledger says so.
        ContainmentError: the run ended, and what it left can't be read safely.
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
    engine = open_engine(session.host)
    engine.image(gate.seal.image.image_id)
    view = SnapshotView(session.state, gate.seal.snapshot)
    view.verify()
    ready = _Ready(
        session=session,
        approved=approved,
        gate=gate,
        seen=len(entries),
        engine=engine,
        view=view,
        folder=session.state.run(approved.value.run),
    )
    with _claimed(ready):
        _spend(ready)
        return _run_claimed(ready, sink, stop, tell)


@contextlib.contextmanager
def _claimed(ready: _Ready) -> Iterator[None]:
    """Hold the run as its controller; no sweep can come between its folder and its lock."""
    with contextlib.ExitStack() as held:
        with hold_runs(ready.session.state):
            try:
                ready.folder.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise state_error("make a run's folder", error) from error
            held.enter_context(claim_run(ready.folder))
        yield


def hold_runs(state: StateFolder) -> AbstractContextManager[None]:
    """Hold the folder of all runs for a moment, to add one or to sweep dead ones."""
    busy = "runs: another command sweeps them"
    return hold_lock(state.root / "runs.lock", wait_seconds=60, busy=busy)


def _spend(ready: _Ready) -> None:
    plan = ready.plan
    ready.session.ledger.append(
        "run",
        "intent",
        project=ready.session.project.id,
        body={
            "run": plan.run,
            "plan": plan.digest,
            "seal": plan.seal,
            "nonce": plan.nonce,
            "approvals": [digest_of(item.statement) for item in ready.approved.approvals],
        },
        check=guard_grant(ready.gate.terms, seen=ready.seen),
    )


def _run_claimed(ready: _Ready, sink: Sink | None, stop: StopRequest, tell: Tell) -> Ran:
    started = now_text()
    uid, gid = worker_owner()
    operation = operation_from_seal(
        ready.seal,
        run=ready.plan.run,
        state=state_id(ready.session.state.root),
        layers=ready.view.layers,
        folder=ready.folder,
        uid=uid,
        gid=gid,
    )
    tell("running")
    try:
        result = run_operation(ready.engine, operation, sink=sink, stop=stop)
    except HarnessError as error:
        cause = Outcome(kind="infra-failure", cause=error.code)
        append_run_end(ready.session, ready.plan, outcome=cause, record="", wall_ms=0)
        _clean_up(ready)
        raise
    tell("reading what it changed")
    imported, trouble = _import(ready, result)
    record = _record(ready, result, imported, trouble, started)
    if imported is not None:
        quarantine(ready.session, ready.plan, record.outcome, imported)
    append_run_end(
        ready.session,
        ready.plan,
        outcome=record.outcome,
        record=ready.session.blobs.put(record.to_bytes()),
        wall_ms=record.usage["wall_ms"],
    )
    problems = (*result.problems, *_clean_up(ready))
    if trouble is not None:
        raise trouble
    return Ran(record=record, imported=imported, problems=problems)


def append_run_end(
    session: Session, plan: Plan, *, outcome: Outcome, record: str, wall_ms: int
) -> None:
    """Append the end of a run.

    Args:
        session: host and project.
        plan: what ran.
        outcome: how it ended.
        record: digest of the run record; empty when there is none.
        wall_ms: how long it took; 0 when unknown.
    """
    session.ledger.append(
        "run",
        "done",
        project=plan.project,
        body={
            "run": plan.run,
            "plan": plan.digest,
            "record": record,
            "outcome": str(outcome),
            "kind": outcome.kind,
            "wallMs": wall_ms,
        },
    )


def quarantine(session: Session, plan: Plan, outcome: Outcome, imported: Imported) -> None:
    """Keep the changeset and what belongs to it, and put it on the ledger with its own nonce."""
    blobs = session.blobs
    changeset = imported.changeset
    record = QuarantineRecord(
        run=plan.run,
        plan=plan.digest,
        outcome=outcome.kind,
        diff=blobs.put(changeset.to_bytes()),
        by_products=blobs.put(by_products_bytes(changeset.base, imported.by_products)),
        flags=tuple((flag.path, flag.text) for flag in imported.flags),
        missing=imported.missing,
        undoes="",
    )
    session.ledger.append(
        "quarantine",
        "done",
        project=session.project.id,
        body={
            "run": plan.run,
            "plan": plan.digest,
            "diff": record.diff,
            "byProducts": record.by_products,
            "record": blobs.put(record.to_bytes()),
            "nonce": secrets.token_hex(16),
            "base": changeset.base,
            "result": changeset.result,
            "changes": len(changeset.changes),
        },
    )


def _import(ready: _Ready, result: WorkerResult) -> tuple[Imported | None, HarnessError | None]:
    """Read what the worker left; what can't be read safely is an error, kept for the end."""
    recipe = ready.seal.recipe
    ignored = IgnoreRules.from_tree(ready.view.load, ready.seal.snapshot)
    try:
        imported = import_changes(
            result.upper,
            base=ready.seal.snapshot,
            load=ready.view.load,
            read_base=ready.view.open,
            rules=ImportRules(
                writable=recipe["writable"],
                outputs=[Output(**output) for output in recipe["outputs"]],
                is_ignored=ignored.is_ignored,
            ),
            blobs=ready.session.blobs,
            max_bytes=Limits(**ready.seal.isolation["limits"]).workspace_bytes,
        )
    except HarnessError as error:
        return None, error
    return imported, None


def _record(
    ready: _Ready,
    result: WorkerResult,
    imported: Imported | None,
    trouble: HarnessError | None,
    started: str,
) -> RunRecord:
    blobs = ready.session.blobs
    report = _read_reports(ready, imported)
    facts = _with_checks(result.facts, report)
    if trouble is not None and not facts.stop_reason:
        facts = replace(facts, infra=facts.infra or f"import: {trouble.code}")
    for stream in (result.stdout, result.stderr):
        with stream.path.open("rb") as log:
            blobs.put_stream(log)
    return RunRecord(
        run=ready.plan.run,
        plan=ready.plan.digest,
        seal=ready.plan.seal,
        outcome=classify_outcome(facts),
        started=started,
        finished=now_text(),
        steps=facts.steps,
        stdout=result.stdout.record,
        stderr=result.stderr.record,
        checks=report.counts() if report else {},
        artifacts=imported.artifacts if imported else (),
        observed=result.observed,
        usage=result.usage,
        workspace=result.workspace,
        engine=result.engine,
    )


def _read_reports(ready: _Ready, imported: Imported | None) -> TestReport | None:
    """Count the checks of all declared reports; None when the recipe declares none."""
    wanted = {output["name"] for output in ready.seal.recipe["outputs"] if output["report"]}
    if not wanted or imported is None:
        return None
    total = TestReport()
    for artifact in imported.artifacts:
        if artifact.name not in wanted:
            continue
        wanted.discard(artifact.name)
        if artifact.size > MAX_REPORT_BYTES:
            return TestReport(problem=f"test report: more than {MAX_REPORT_BYTES} bytes")
        report = read_report(ready.session.blobs.get(artifact.digest))
        if report.problem:
            return report
        total = TestReport(
            passed=total.passed + report.passed,
            failed=total.failed + report.failed,
            skipped=total.skipped + report.skipped,
        )
    if wanted:
        return TestReport(problem=f"test report: {', '.join(sorted(wanted))} was not written")
    return total


def _with_checks(facts: Facts, report: TestReport | None) -> Facts:
    if report is None:
        return facts
    return replace(
        facts,
        checks_run=None if report.problem else report.run,
        checks_failed=report.failed,
        report_problem=report.problem,
    )


def _clean_up(ready: _Ready) -> tuple[str, ...]:
    """Remove the workspace and the run's folder; what stays is named and swept later.

    The folder is what the sweep goes by, so it stays as long as anything else does.
    """
    state = state_id(ready.session.state.root)
    try:
        if is_owned(ready.engine.owned(state), ready.plan.run):
            return (f"run {ready.plan.run}: something is left; the next command removes it",)
        remove_workspace(
            ready.engine,
            ready.folder / "workspace",
            image_id=ready.seal.image.image_id,
            labels={LABEL_RUN: ready.plan.run, LABEL_STATE: state},
        )
        remove_folder(ready.folder)
    except HarnessError as error:
        return (f"cleanup: {error.message}",)
    return ()
