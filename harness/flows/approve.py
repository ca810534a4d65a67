"""Approve and reject: a person's signature over one full hash, received on the ledger.

A statement can be signed here with `ssh-keygen`, or written to a file, signed elsewhere with stock
tools, and brought back. Either way it is verified before anything is recorded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import (
    ApprovalConsumedError,
    ApprovalExpiredError,
    ApprovalMissingError,
    InputError,
)
from harness.flows.gates import (
    OpenGate,
    decide_diff_gate,
    decide_plan_gate,
    open_gate,
    refuse_what_cannot_land,
)
from harness.flows.session import Session, now_text
from harness.governance.approvals import (
    ReceivedApproval,
    VerifiedApproval,
    build_approval,
    open_reviewers,
    verify_approval,
)
from harness.governance.grants import decision_body, is_spent
from harness.governance.reviewers import Reviewer
from harness.governance.sign import read_public_key, sign_statement
from harness.model.approval import Approval, Decision
from harness.model.clock import add_ms
from harness.model.digest import Digest, short
from harness.model.entry import Entry, EntryVerb


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A decision that was verified and recorded.

    Attributes:
        gate: what was decided on.
        verified: who decided, with which key.
        statement: digest of the statement's bytes.
        missing: what the gate still lacks; empty when it is open now.
    """

    gate: OpenGate
    verified: VerifiedApproval
    statement: Digest
    missing: str


def open_for_decision(session: Session, digest: Digest, decision: Decision) -> OpenGate:
    """Open a gate that still waits for decisions.

    Raises:
        InputError: no such plan or diff.
        ApprovalConsumedError: its one-time approval is spent.
        ApprovalExpiredError: the plan is past its end.
        ApprovalRejectedError: a reviewer said no, and more approvals would not help.
        AuthorityError, ContainmentError: it could not run or land whoever approved it.
    """
    entries = session.ledger.entries()
    gate = open_gate(session, entries, digest)
    if is_spent(entries, gate.terms.nonce):
        again = "seal the recipe again" if gate.gate == "plan" else "run the recipe again"
        raise ApprovalConsumedError(
            f"{gate.gate} {short(digest)}: its approval was used already",
            hint=f"an approval works once; {again}, and have the new {gate.gate} approved",
        )
    if gate.gate == "plan" and now_text() > gate.plan.not_after:
        raise ApprovalExpiredError(
            f"plan {short(digest)}: expected a decision before {gate.plan.not_after}"
        )
    if decision == "approve":
        _refuse_what_no_approval_helps(session, entries, gate)
    return gate


def _refuse_what_no_approval_helps(
    session: Session, entries: Sequence[Entry], gate: OpenGate
) -> None:
    """Decide as if now: whatever but a missing approval stands in the way would stay there."""
    if gate.quarantine is not None:
        refuse_what_cannot_land(gate.quarantine)
    with contextlib.suppress(ApprovalMissingError):
        _decide_now(session, entries, gate)


def _decide_now(session: Session, entries: Sequence[Entry], gate: OpenGate) -> None:
    if gate.quarantine is None:
        decide_plan_gate(session, entries, gate)
    else:
        decide_diff_gate(session, entries, gate)


def build_statement(gate: OpenGate, *, decision: Decision, reviewer: str, comment: str) -> Approval:
    """Return the statement that a reviewer signs for this gate, good as long as the policy says.

    A plan's approval ends with the plan at the latest.
    """
    now = now_text()
    end = add_ms(now, gate.policy.approval.valid_ms)
    return build_approval(
        gate.terms,
        decision=decision,
        reviewer=reviewer,
        issued_on=now,
        not_after=min(end, gate.plan.not_after) if gate.gate == "plan" else end,
        comment=comment,
    )


def find_signer(gate: OpenGate, key: Path) -> Reviewer:
    """Return the reviewer who owns a key.

    Raises:
        InputError: the key can't be read, or is nobody's in the reviewers file.
    """
    public = read_public_key(key)
    reviewer = open_reviewers(gate.policy.approval, gate.policy.reviewers).by_key(public)
    if reviewer is None:
        raise InputError(
            f"key {public.fingerprint}: is nobody's in the reviewers file of policy "
            f"{gate.policy.name}",
            hint="add its line to the reviewers file, then seal again",
        )
    return reviewer


def decide(
    session: Session,
    digest: Digest,
    *,
    decision: Decision,
    key: Path,
    comment: str,
    interactive: bool,
) -> Received:
    """Sign a decision with a key of this host and record it.

    Args:
        session: host and project.
        digest: full plan hash or diff hash.
        decision: approve or reject.
        key: private key file, or the public one of a key that an agent holds.
        comment: free text, signed along.
        interactive: a person sits at the terminal and can be asked for a passphrase.

    Raises:
        InputError: no such gate, or no such key.
        AuthorityError: the gate takes no more decisions, or the signature does not hold.
    """
    gate = open_for_decision(session, digest, decision)
    reviewer = find_signer(gate, key)
    approval = build_statement(gate, decision=decision, reviewer=reviewer.person, comment=comment)
    statement = approval.to_bytes()
    signature = sign_statement(
        statement, gate=gate.gate, key=key, environment=os.environ, interactive=interactive
    )
    return _receive(session, gate, decision, statement, signature)


def receive(
    session: Session, digest: Digest, *, decision: Decision, statement: bytes, signature: bytes
) -> Received:
    """Record a decision that was signed elsewhere.

    Raises:
        InputError: no such gate.
        AuthorityError: the gate takes no more decisions, or the signature does not hold.
    """
    gate = open_for_decision(session, digest, decision)
    return _receive(session, gate, decision, statement, signature)


def _receive(
    session: Session, gate: OpenGate, decision: Decision, statement: bytes, signature: bytes
) -> Received:
    verified = verify_approval(
        ReceivedApproval(statement=statement, signature=signature, received=now_text()),
        terms=gate.terms,
        policy=gate.policy.approval,
        reviewers=open_reviewers(gate.policy.approval, gate.policy.reviewers),
    )
    if verified.signed.approval.decision != decision:
        raise InputError(
            f"statement: expected decision {decision}, got {verified.signed.approval.decision}"
        )
    blob = session.blobs.put(statement)
    session.blobs.put(signature)
    verb: EntryVerb = decision
    session.ledger.append(verb, "done", project=session.project.id, body=decision_body(verified))
    missing = "" if decision == "reject" else _missing(session, gate)
    return Received(gate=gate, verified=verified, statement=blob, missing=missing)


def _missing(session: Session, gate: OpenGate) -> str:
    """Return what a gate still lacks; empty when it is open."""
    try:
        _decide_now(session, session.ledger.entries(), gate)
    except ApprovalMissingError as error:
        return "; ".join(issue.message for issue in error.issues)
    return ""
