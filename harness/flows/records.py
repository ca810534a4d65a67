"""Run records: made when an operation has ended, and read back from the store."""

from __future__ import annotations

from dataclasses import replace

from harness.errors import HarnessError, InputError
from harness.execution.quarantine.import_changes import Imported
from harness.execution.worker.operation import WorkerResult
from harness.flows.checks import read_reports, with_checks
from harness.flows.gates import SealedOperation
from harness.flows.history import OperationRun, RunSummary
from harness.flows.session import Session, now_text
from harness.model.digest import parse_digest
from harness.model.outcome import classify_outcome
from harness.model.plan import Plan
from harness.model.run_record import RunRecord, parse_run_record
from harness.store.blobs import BlobStore


def make_record(
    plan: Plan,
    operation: SealedOperation,
    result: WorkerResult,
    *,
    imported: Imported | None,
    trouble: HarnessError | None,
    started: str,
    blobs: BlobStore,
) -> RunRecord:
    """Store what an operation wrote, and return the record of how it ended.

    Args:
        plan: what was approved.
        operation: the one that ran.
        result: what the worker left.
        imported: what it changed; None when that could not be read.
        trouble: why it could not be read.
        started: RFC 3339 time before its container was created.
        blobs: takes the logs.

    Raises:
        StateError: the logs can't be stored.
    """
    facts = result.facts
    if imported is not None:
        report = read_reports(operation.seal.recipe["outputs"], imported.artifacts, blobs)
        facts = with_checks(replace(facts, output_problem=_told(imported.too_large)), report)
    else:
        report = None
    if trouble is not None and not facts.stop_reason:
        facts = replace(facts, infra=facts.infra or f"import: {trouble.code}")
    for stream in (result.stdout, result.stderr):
        with stream.path.open("rb") as log:
            blobs.put_stream(log)
    return RunRecord(
        run=plan.run,
        operation=operation.name,
        plan=plan.digest,
        seal=operation.digest,
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
        workspace_reason=result.workspace_reason,
        engine=result.engine,
    )


def _told(problems: tuple[str, ...]) -> str:
    """Return the first problem, and how many more there are."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


def load_record(session: Session, run: RunSummary, operation: OperationRun) -> RunRecord:
    """Return the record of one operation of a run.

    Raises:
        InputError: it left none: it was interrupted, skipped, or could not begin.
        VerificationError: the stored bytes are missing or differ.
    """
    if not operation.record:
        where = run.run if len(run.operations) == 1 else f"{run.run}/{operation.name}"
        raise InputError(
            f"run {where}: {operation.outcome}; it left no record and no logs",
            hint=f"`harness runs show {run.run}` says more"
            if run.is_over
            else f"while it goes on: `harness runs logs --follow {run.run}`",
        )
    return parse_run_record(session.blobs.get(parse_digest(operation.record)))
