"""Plans to look at: what one would run, and where its gate stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import ApprovalMissingError, HarnessError
from harness.flows.gates import SealedOperation, decide_plan_gate, load_plan, open_plan_gate
from harness.flows.history import list_plans
from harness.flows.lookup import find_plan
from harness.flows.session import Session, now_text
from harness.governance.grants import is_spent
from harness.model.digest import Digest
from harness.model.entry import Entry
from harness.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan and where it stands.

    Attributes:
        plan: the plan.
        operations: what it executes, in order.
        status: used, expired, approved, waiting for approval, or refused.
        tally: who approved, or what is missing.
    """

    plan: Plan
    operations: tuple[SealedOperation, ...]
    status: str
    tally: str


def view_plan(session: Session, given: str) -> PlanView:
    """Return one plan, by hash (12 or more digits) or run id.

    Raises:
        InputError: none or several fit.
        VerificationError: stored bytes are missing or differ.
    """
    entries = session.ledger.entries()
    return view_plan_of(session, entries, find_plan(entries, session.project.id, given).plan)


def view_plan_of(session: Session, entries: Sequence[Entry], digest: Digest) -> PlanView:
    """Return one plan by its full hash.

    Raises:
        VerificationError: stored bytes are missing or differ.
    """
    plan, operations = load_plan(session, digest)
    status, tally = _stand(session, entries, plan)
    return PlanView(plan=plan, operations=operations, status=status, tally=tally)


def view_plans(session: Session) -> list[PlanView]:
    """Return all plans of the project, oldest first.

    Raises:
        VerificationError: stored bytes are missing or differ.
    """
    entries = session.ledger.entries()
    return [
        view_plan_of(session, entries, summary.plan)
        for summary in list_plans(entries, session.project.id)
    ]


def _stand(session: Session, entries: Sequence[Entry], plan: Plan) -> tuple[str, str]:
    if is_spent(entries, plan.nonce):
        return "used", ""
    if now_text() > plan.not_after:
        return "expired", ""
    try:
        gate = open_plan_gate(session, plan.digest)
        approved = decide_plan_gate(session, entries, gate)
    except ApprovalMissingError as error:
        return "waiting for approval", "; ".join(issue.message for issue in error.issues)
    except HarnessError as error:
        return "refused", error.message
    people = ", ".join(sorted({item.approval.reviewer for item in approved.approvals}))
    return "approved", f"by {people}"
