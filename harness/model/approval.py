"""An approval: one person's signed in-toto Statement over a plan hash or a diff hash.

The exact bytes of the statement are kept; the signature beside them is an SSHSIG whose namespace
is the gate's. `Approved[...]` can only be made by `harness.governance`; a run or an apply takes
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.clock import parse_time
from harness.model.digest import Digest, digest_from_hex, digest_of, parse_digest

STATEMENT_KIND = "https://in-toto.io/Statement/v1"
APPROVAL_PREDICATE = "urn:sealed-harness:approval:v1"

Gate = Literal["plan", "diff"]
Decision = Literal["approve", "reject"]

NAMESPACES: Mapping[Gate, str] = {
    "plan": "plan-approval@harness",
    "diff": "diff-approval@harness",
}

_SUBJECT_NAMES: Mapping[Gate, str] = {"plan": "plan", "diff": "changeset"}

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One person's decision, as signed.

    Attributes:
        gate: plan or diff.
        decision: approve or reject.
        subject: the plan hash or the diff hash.
        project: the project's id.
        plan: the plan hash; for a diff, that of the run it came from.
        policy: digest of the approval policy.
        nonce: the gate's nonce, 32 hex digits.
        issued_on: RFC 3339 time the reviewer claims.
        not_after: RFC 3339 time after which it does not count.
        reviewer: principal, as in the reviewers file.
        comment: free text.
    """

    gate: Gate
    decision: Decision
    subject: Digest
    project: str
    plan: Digest
    policy: Digest
    nonce: str
    issued_on: str
    not_after: str
    reviewer: str
    comment: str = ""

    def to_bytes(self) -> bytes:
        """Return the statement's canonical bytes: what is signed."""
        body: dict[str, Any] = {
            "_type": STATEMENT_KIND,
            "subject": [
                {
                    "name": _SUBJECT_NAMES[self.gate],
                    "digest": {"sha256": self.subject.removeprefix("sha256:")},
                }
            ],
            "predicateType": APPROVAL_PREDICATE,
            "predicate": {
                "gate": self.gate,
                "decision": self.decision,
                "project": self.project,
                "plan": self.plan,
                "policy": self.policy,
                "nonce": self.nonce,
                "issuedOn": self.issued_on,
                "notAfter": self.not_after,
                "reviewer": self.reviewer,
                "comment": self.comment,
            },
        }
        return canonical_bytes(body)

    @property
    def digest(self) -> Digest:
        """Return the digest of the statement."""
        return digest_of(self.to_bytes())


def parse_approval(data: bytes) -> Approval:
    """Read a statement.

    Raises:
        InputError: not canonical, another predicate, or malformed.
    """
    value = parse_canonical(data, STATEMENT_KIND)
    try:
        (subject,) = value["subject"]
        predicate = value["predicate"]
        if not all(isinstance(member, str) for member in predicate.values()):
            raise InputError("approval: expected text in every member of the predicate")
        gate, decision = predicate["gate"], predicate["decision"]
        if gate not in NAMESPACES or decision not in ("approve", "reject"):
            raise InputError(f"approval: gate {gate!r:.40} or decision {decision!r:.40} unknown")
        approval = Approval(
            gate=gate,
            decision=decision,
            subject=digest_from_hex(subject["digest"]["sha256"]),
            project=predicate["project"],
            plan=parse_digest(predicate["plan"]),
            policy=parse_digest(predicate["policy"]),
            nonce=predicate["nonce"],
            issued_on=predicate["issuedOn"],
            not_after=predicate["notAfter"],
            reviewer=predicate["reviewer"],
            comment=predicate["comment"],
        )
        parse_time(approval.issued_on)
        parse_time(approval.not_after)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"approval: malformed: {error!r}"[:200]) from error
    if approval.to_bytes() != data:
        raise InputError("approval: has unknown or missing members")
    return approval


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedApproval:
    """A decision with its exact bytes, the armoured SSHSIG over them, and when it was received.

    Attributes:
        approval: the parsed statement.
        statement: its exact bytes.
        signature: the armoured SSHSIG.
        received: RFC 3339 time of the ledger entry; expiry is judged by this clock.
    """

    approval: Approval
    statement: bytes
    signature: bytes
    received: str


_MAKER = object()


class Approved(Generic[T_co]):
    """A value that governance found approved; the type says the gate was passed.

    The digest is recomputed at the point of use all the same: a type does not stop time.
    """

    __slots__ = ("approvals", "value")

    def __init__(
        self, value: T_co, approvals: tuple[SignedApproval, ...], *, maker: object
    ) -> None:
        if maker is not _MAKER:
            raise RuntimeError("only harness.governance makes an Approved value")
        self.value = value
        self.approvals = approvals
