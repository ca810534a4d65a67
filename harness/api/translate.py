"""Makes the API's values from those of the flows."""

from __future__ import annotations

import os

from harness.api.values import Change, Decision, Diff, Operation, Plan, Run
from harness.flows.approve import Received
from harness.flows.history import OperationRun, RunSummary
from harness.flows.plans import PlanView
from harness.flows.quarantined import Quarantine, render_quarantine
from harness.flows.records import load_record
from harness.flows.session import Session


def plan_of(view: PlanView) -> Plan:
    """Return a plan as the API has it."""
    return Plan(
        hash=view.plan.digest,
        run=view.plan.run,
        operations=tuple(item.name for item in view.operations),
        status=view.status,
        detail=view.tally,
        not_after=view.plan.not_after,
    )


def decision_of(received: Received) -> Decision:
    """Return a decision as the API has it."""
    approval = received.verified.signed.approval
    return Decision(
        subject=approval.subject,
        gate=approval.gate,
        decision=approval.decision,
        reviewer=received.verified.person,
        missing=received.missing,
    )


def run_of(session: Session, run: RunSummary) -> Run:
    """Return a run as the API has it; its records are read from the store."""
    return Run(
        id=run.run,
        plan=run.plan,
        kind=run.kind,
        operations=tuple(_operation_of(session, run, item) for item in run.operations),
    )


def _operation_of(session: Session, run: RunSummary, operation: OperationRun) -> Operation:
    diff = operation.diff if operation.changes else ""
    if not operation.record:
        return Operation(name=operation.name, kind=operation.kind, outcome=operation.outcome)
    record = load_record(session, run, operation)
    return Operation(
        name=operation.name,
        kind=operation.kind,
        outcome=operation.outcome,
        diff=diff,
        checks=dict(record.checks),
        artifacts={item.name: item.digest for item in record.artifacts},
        stdout=record.stdout.kept,
        stderr=record.stderr.kept,
    )


def diff_of(session: Session, quarantine: Quarantine) -> Diff:
    """Return a diff as the API has it."""
    return Diff(
        hash=quarantine.summary.diff,
        run=quarantine.summary.run,
        changes=tuple(
            Change(
                path=os.fsdecode(change.path),
                op=change.op,
                mode=change.after.mode if change.after else "",
                digest=change.after.digest if change.after else "",
            )
            for change in quarantine.changeset.changes
        ),
        obstacles={os.fsdecode(path): reason for path, reason in quarantine.obstacles},
        flags={os.fsdecode(path): reason for path, reason in quarantine.record.flags},
        patch=render_quarantine(session, quarantine),
        landed=quarantine.summary.landed,
    )
