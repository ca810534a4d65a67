"""One operation of a run: worker, import, record, quarantine, end, clean up.

Each step is durable before the next: an operation that the ledger calls passed has its diff there
too, wherever the process died.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, Engine
from harness.execution.quarantine.import_changes import Imported, import_changes
from harness.execution.quarantine.rules import ImportRules
from harness.execution.snapshot.ignore import IgnoreRules
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.live import Sink
from harness.execution.worker.operation import StopRequest, WorkerResult, operation_from_seal
from harness.execution.worker.run_operation import run_operation
from harness.execution.worker.sweep import is_owned, state_id
from harness.execution.worker.workspace import remove_workspace
from harness.flows.gates import SealedOperation
from harness.flows.records import make_record
from harness.flows.session import Session, now_text
from harness.flows.worker_identity import worker_owner
from harness.model.changeset import by_products_bytes
from harness.model.digest import Digest
from harness.model.limits import Limits
from harness.model.outcome import Outcome
from harness.model.plan import Plan
from harness.model.quarantine_record import QuarantineRecord
from harness.model.recipe import sealed_outputs
from harness.model.run_record import RunRecord
from harness.store.durable import remove_folder, state_error

Tell = Callable[[str], None]
"""Says what happens now, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One operation that has ended.

    Attributes:
        name: of the operation.
        outcome: how it ended.
        record: what happened; None when it never began.
        imported: what it changed; None when that could not be read, or it never began.
        problems: what went wrong beside it; none of it is a verdict.
    """

    name: str
    outcome: Outcome
    record: RunRecord | None = None
    imported: Imported | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInHand:
    """A run whose grant is spent, held by this process.

    Attributes:
        session: host and project.
        plan: what was approved.
        engine: where it runs.
        views: the verified snapshot of each operation, by the operation's name.
        folder: the run's own, mode 0700.
        nonces: of the diffs quarantined so far: the same diff is approved and lands once.
    """

    session: Session
    plan: Plan
    engine: Engine
    views: dict[str, SnapshotView]
    folder: Path
    nonces: dict[Digest, str] = field(default_factory=dict)


def perform(
    run: RunInHand,
    operation: SealedOperation,
    *,
    number: int,
    sink: Sink | None,
    stop: StopRequest,
    tell: Tell,
) -> Ended:
    """Run one operation and record its end.

    Args:
        run: the run it belongs to.
        operation: what to run.
        number: its position in the plan, from 0; names its folder.
        sink: gets the output while it comes.
        stop: a request to end.
        tell: is told what happens now.

    Raises:
        SandboxUnavailableError: the worker could not be made; the ledger says so.
        ContainmentError: the worker ended, and what it left can't be read safely; so does it then.
        StateError: the state folder can't take it.
    """
    folder = run.folder / str(number)
    view = run.views[operation.name]
    started = now_text()
    tell("running")
    try:
        result = _work(run, operation, view, folder, sink=sink, stop=stop)
    except HarnessError as error:
        never_began = Outcome(kind="infra-failure", cause=error.code)
        append_end(run.session, run.plan, operation.name, never_began)
        _clean_up(run, operation, folder, is_clear=False)
        raise
    tell("reading what it changed")
    imported, trouble = _import(run, operation, view, result)
    record = make_record(
        run.plan,
        operation,
        result,
        imported=imported,
        trouble=trouble,
        started=started,
        blobs=run.session.blobs,
    )
    if imported is not None:
        _quarantine(run, operation, record.outcome, imported)
    append_end(run.session, run.plan, operation.name, record.outcome, record=record)
    left = _clean_up(run, operation, folder, is_clear=not result.problems)
    if trouble is not None:
        raise trouble
    return Ended(
        name=operation.name,
        outcome=record.outcome,
        record=record,
        imported=imported,
        problems=(*result.problems, *left),
    )


def append_end(
    session: Session,
    plan: Plan,
    operation: str,
    outcome: Outcome,
    *,
    record: RunRecord | None = None,
) -> None:
    """Append the end of one operation of a run.

    Args:
        session: host and project.
        plan: what ran.
        operation: its name.
        outcome: how it ended.
        record: what happened; None when there is none.
    """
    session.ledger.append(
        "run",
        "done",
        project=plan.project,
        body={
            "run": plan.run,
            "operation": operation,
            "plan": plan.digest,
            "record": session.blobs.put(record.to_bytes()) if record else "",
            "outcome": str(outcome),
            "kind": outcome.kind,
            "wallMs": record.usage["wall_ms"] if record else 0,
        },
    )


def _work(
    run: RunInHand,
    operation: SealedOperation,
    view: SnapshotView,
    folder: Path,
    *,
    sink: Sink | None,
    stop: StopRequest,
) -> WorkerResult:
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise state_error("make an operation's folder", error) from error
    uid, gid = worker_owner()
    work = operation_from_seal(
        operation.seal,
        run=run.plan.run,
        state=run.session.state,
        snapshot=view,
        folder=folder,
        uid=uid,
        gid=gid,
    )
    return run_operation(run.engine, work, sink=sink, stop=stop)


def _import(
    run: RunInHand, operation: SealedOperation, view: SnapshotView, result: WorkerResult
) -> tuple[Imported | None, HarnessError | None]:
    """Read what the worker left; what can't be read safely is an error, kept for the end."""
    if result.trouble is not None:
        return None, result.trouble
    seal = operation.seal
    ignored = IgnoreRules.from_tree(view.load, seal.snapshot)
    try:
        imported = import_changes(
            result.upper,
            gone=result.gone,
            base=seal.snapshot,
            load=view.load,
            read_base=view.open,
            rules=ImportRules(
                writable=seal.recipe["writable"],
                outputs=sealed_outputs(seal.recipe),
                is_ignored=ignored.is_ignored,
            ),
            blobs=run.session.blobs,
            max_bytes=Limits(**seal.isolation["limits"]).workspace_bytes,
        )
    except HarnessError as error:
        return None, error
    return imported, None


def _quarantine(
    run: RunInHand, operation: SealedOperation, outcome: Outcome, imported: Imported
) -> None:
    """Keep the changeset and what belongs to it, and put it on the ledger with its nonce."""
    session, plan = run.session, run.plan
    blobs, changeset = session.blobs, imported.changeset
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
            "operation": operation.name,
            "plan": plan.digest,
            "diff": record.diff,
            "byProducts": record.by_products,
            "record": blobs.put(record.to_bytes()),
            "nonce": run.nonces.setdefault(record.diff, secrets.token_hex(16)),
            "base": changeset.base,
            "result": changeset.result,
            "changes": len(changeset.changes),
        },
    )


def _clean_up(
    run: RunInHand, operation: SealedOperation, folder: Path, *, is_clear: bool
) -> tuple[str, ...]:
    """Remove the workspace and the operation's folder; what stays is named and swept later.

    The folder is what the sweep goes by, so it stays as long as anything else does. Where all was
    removed from the engine without trouble (`is_clear`), the engine is not asked again.
    """
    state = state_id(run.session.state.root)
    try:
        if not is_clear and is_owned(run.engine.owned(state), run.plan.run):
            return (f"run {run.plan.run}: something is left; the next command removes it",)
        remove_workspace(
            run.engine,
            folder / "workspace",
            image_id=operation.seal.image.image_id,
            labels={LABEL_RUN: run.plan.run, LABEL_STATE: state},
        )
        remove_folder(folder)
    except HarnessError as error:
        return (f"cleanup: {error.message}",)
    return ()
