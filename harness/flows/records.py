"""Run records, from the store."""

from __future__ import annotations

from harness.errors import InputError
from harness.flows.history import RunSummary
from harness.flows.session import Session
from harness.model.digest import parse_digest
from harness.model.run_record import RunRecord, parse_run_record


def load_record(session: Session, run: RunSummary) -> RunRecord:
    """Return the record of a run.

    Raises:
        InputError: the run left none: it was interrupted, or could not begin.
        VerificationError: the stored bytes are missing or differ.
    """
    if not run.record:
        raise InputError(f"run {run.run}: {run.outcome}; it left no record and no logs")
    return parse_run_record(session.blobs.get(parse_digest(run.record)))
