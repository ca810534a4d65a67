"""An approval on its way: build the statement a person signs, and check one that comes back.

A statement can be signed anywhere: here, or elsewhere with stock `ssh-keygen` over the exported
bytes. Either way it is checked by the same obligations, each with its own message; nothing of the
statement is read before its signature holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import (
    ApprovalExpiredError,
    ApprovalInvalidError,
    InputError,
)
from harness.governance.reviewers import Reviewer, Reviewers, parse_reviewers
from harness.governance.ssh_keys import PublicKey
from harness.governance.sshsig import SshSignature, parse_sshsig, verify_sshsig
from harness.model.approval import (
    NAMESPACES,
    Approval,
    Decision,
    Gate,
    SignedApproval,
    parse_approval,
)
from harness.model.changeset import Changeset
from harness.model.clock import add_ms, parse_time
from harness.model.digest import Digest, digest_of
from harness.model.plan import Plan
from harness.model.policy import ApprovalPolicy

MAX_STATEMENT = 64 * 1024

Presence = Literal["software-key", "flag-set-attestation-not-checked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one approval must be about, word for word; a difference anywhere and it is for another.

    Attributes:
        gate: plan or diff.
        subject: the plan hash or the diff hash.
        project: the project's id.
        plan: the plan hash; for a diff, that of the run it came from.
        policy: digest of the approval policy in the plan.
        nonce: the gate's nonce.
        closes: RFC 3339 time after which nobody can decide any more: a plan's end; None for a diff.
    """

    gate: Gate
    subject: Digest
    project: str
    plan: Digest
    policy: Digest
    nonce: str
    closes: str | None

    @property
    def namespace(self) -> str:
        """Return the SSHSIG namespace of the gate."""
        return NAMESPACES[self.gate]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedApproval:
    """A statement and a signature as they came in; nothing about them is known yet.

    Attributes:
        statement: exact bytes.
        signature: armoured SSHSIG.
        received: RFC 3339 time of receipt: that of the ledger entry, or now.
        stale: it came before the state was restored from a backup. As an approval it counts no
            more; a rejection stands.
    """

    statement: bytes
    signature: bytes
    received: str
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedApproval:
    """A decision that holds: made by a reviewer, about these terms, in time at its receipt.

    Attributes:
        signed: the parsed statement with its bytes.
        person: the reviewer who decided, by the first name on their line.
        key: the key that signed.
    """

    signed: SignedApproval
    person: str
    key: PublicKey

    @property
    def presence(self) -> Presence:
        """Return what is known of a touch on the key.

        A key in software can set the flag too; it proves a touch only where the key's hardware
        attestation was checked when it was enrolled, and the reviewers file cannot say so.
        """
        return "flag-set-attestation-not-checked" if self.key.on_device else "software-key"


def plan_terms(plan: Plan) -> Terms:
    """Return what an approval of a plan must be about."""
    return Terms(
        gate="plan",
        subject=plan.digest,
        project=plan.project,
        plan=plan.digest,
        policy=plan.policy,
        nonce=plan.nonce,
        closes=plan.not_after,
    )


def diff_terms(changeset: Changeset, plan: Plan, nonce: str) -> Terms:
    """Return what an approval of a diff must be about.

    Args:
        changeset: the quarantined changes.
        plan: the plan of the run they came from.
        nonce: the diff gate's own nonce, given out when the changeset was quarantined.
    """
    return Terms(
        gate="diff",
        subject=changeset.digest,
        project=plan.project,
        plan=plan.digest,
        policy=plan.policy,
        nonce=nonce,
        closes=None,
    )


def build_approval(
    terms: Terms,
    *,
    decision: Decision,
    reviewer: str,
    issued_on: str,
    not_after: str,
    comment: str = "",
) -> Approval:
    """Return the statement to sign; its `to_bytes` are the bytes to sign.

    Args:
        terms: what is decided about.
        decision: approve or reject.
        reviewer: a name of the person in the reviewers file.
        issued_on: RFC 3339 time.
        not_after: RFC 3339 time after which the decision does not count any more.
        comment: free text, signed along.
    """
    return Approval(
        gate=terms.gate,
        decision=decision,
        subject=terms.subject,
        project=terms.project,
        plan=terms.plan,
        policy=terms.policy,
        nonce=terms.nonce,
        issued_on=issued_on,
        not_after=not_after,
        reviewer=reviewer,
        comment=comment,
    )


def open_reviewers(policy: ApprovalPolicy, reviewers: bytes) -> Reviewers:
    """Read the reviewers file that a policy names by digest.

    Raises:
        ApprovalInvalidError: the bytes are not those the policy names.
        InputError: they are, and are malformed.
    """
    found = digest_of(reviewers)
    if found != policy.reviewers_digest:
        raise ApprovalInvalidError(
            f"reviewers file: expected {policy.reviewers_digest}, got {found}",
            hint="the reviewers file was edited after the policy named it; seal again",
        )
    return parse_reviewers(reviewers)


def verify_approval(
    received: ReceivedApproval, *, terms: Terms, policy: ApprovalPolicy, reviewers: Reviewers
) -> VerifiedApproval:
    """Check one decision; every obligation has its own message.

    1. The policy is the one in the terms.
    2. The signature is one strict SSHSIG, by a key in the reviewers file.
    3. The key may sign for this gate, and its window holds the moment of receipt.
    4. The signature holds over the exact bytes, for this gate's namespace.
    5. The statement is well formed and names the owner of the key.
    6. It is about these terms: gate, subject, project, plan, policy, nonce.
    7. At its receipt neither its own end nor the plan's had passed.

    Raises:
        ApprovalInvalidError: any of 1 to 6 is not so.
        ApprovalExpiredError: 7 is not so.
    """
    if policy.digest != terms.policy:
        raise ApprovalInvalidError(
            f"policy: expected {terms.policy}, got {policy.digest}",
            hint="the policy was edited after the plan was sealed; seal again",
        )
    signature = parse_sshsig(received.signature)
    reviewer = _find_reviewer(signature, reviewers, terms.namespace, received.received)
    verify_sshsig(signature, received.statement, namespace=terms.namespace, key=reviewer.key)
    approval = _parse_statement(received.statement)
    if approval.reviewer not in reviewer.names:
        raise ApprovalInvalidError(
            f"statement: expected reviewer {reviewer.person!r}, who owns the key that signed it, "
            f"got {approval.reviewer!r:.80}"
        )
    _match_terms(approval, terms)
    for end in (approval.not_after, terms.closes):
        if end is not None and parse_time(received.received) > parse_time(end):
            raise ApprovalExpiredError(
                f"approval by {reviewer.person}: expected before {end}, got {received.received}"
            )
    signed = SignedApproval(
        approval=approval,
        statement=received.statement,
        signature=received.signature,
        received=received.received,
    )
    return VerifiedApproval(signed=signed, person=reviewer.person, key=reviewer.key)


def good_until(signed: SignedApproval, policy: ApprovalPolicy) -> str:
    """Return when an approval stops counting: its own end, or the policy's term after receipt.

    A person can shorten the policy's term by signing an earlier end, never lengthen it.
    """
    return min(signed.approval.not_after, add_ms(signed.received, policy.valid_ms))


def _find_reviewer(
    signature: SshSignature, reviewers: Reviewers, namespace: str, received: str
) -> Reviewer:
    key = signature.key
    reviewer = reviewers.by_key(key)
    if reviewer is None:
        raise ApprovalInvalidError(
            f"signature: key {key.fingerprint} is not in the reviewers file",
            hint="sign with a key from the reviewers file of this plan's policy",
        )
    if not reviewer.may_sign_for(namespace):
        raise ApprovalInvalidError(
            f"signature: key of {reviewer.person} may not sign for {namespace}",
            hint=f"line {reviewer.line} of the reviewers file lists the namespaces it may sign for",
        )
    if not reviewer.is_valid_at(parse_time(received)):
        raise ApprovalInvalidError(
            f"signature: key of {reviewer.person} does not count at {received}",
            hint=f"line {reviewer.line} of the reviewers file says from when to when it does",
        )
    return reviewer


def _parse_statement(statement: bytes) -> Approval:
    if len(statement) > MAX_STATEMENT:
        raise ApprovalInvalidError(
            f"statement: expected at most {MAX_STATEMENT} bytes, got {len(statement)}"
        )
    try:
        return parse_approval(statement)
    except InputError as error:
        raise ApprovalInvalidError(f"statement: {error.message}") from error


def _match_terms(approval: Approval, terms: Terms) -> None:
    for member in ("gate", "subject", "project", "plan", "policy", "nonce"):
        expected, got = getattr(terms, member), getattr(approval, member)
        if got != expected:
            raise ApprovalInvalidError(
                f"statement: expected {member} {expected}, got {got!r:.100}",
                hint="it was signed for something else; sign what is shown now",
            )
