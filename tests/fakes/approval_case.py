"""A whole approval case in memory: persons with keys, a policy, a plan, a changeset, signatures."""

from __future__ import annotations

from collections.abc import Iterable

from harness.governance.approvals import ReceivedApproval, Terms, build_approval
from harness.governance.authority import Circumstances
from harness.model.approval import NAMESPACES, Decision
from harness.model.changeset import Change, Changeset
from harness.model.digest import digest_of
from harness.model.plan import Disclosure, Plan, PlannedOperation
from harness.model.policy import ApprovalPolicy, PathRule
from harness.model.tree import EntryType, Node
from tests.fakes.ssh_signer import FakeSigner, make_signer

ALICE = make_signer(1)
ALICE_TWO = make_signer(2)
BOB = make_signer(3)
CAROL = make_signer(4, application=b"ssh:")
STRANGER = make_signer(5)

PROJECT = "p-1"
NOW = "2026-06-01T12:00:00.000Z"
LATER = "2026-06-02T12:00:00.000Z"
DIFF_NONCE = "d" * 32

REVIEWERS = (
    f"alice,alice@example.org {ALICE.public_text} laptop\n"
    f"alice,alice@example.org {ALICE_TWO.public_text} desk\n"
    f"bob {BOB.public_text}\n"
    f"carol {CAROL.public_text}\n"
).encode()


def make_policy(
    *,
    plan: int = 1,
    diff: int = 1,
    rules: tuple[PathRule, ...] = (),
    exclude_requester: bool = False,
    reviewers: bytes = REVIEWERS,
    throwaway: bool = False,
    valid_ms: int = 24 * 3600 * 1000,
) -> ApprovalPolicy:
    return ApprovalPolicy(
        plan_approvals=plan,
        diff_approvals=diff,
        rules=rules,
        exclude_requester=exclude_requester,
        valid_ms=valid_ms,
        reviewers_digest=digest_of(reviewers),
        throwaway=throwaway,
    )


def make_plan(policy: ApprovalPolicy, *, run: str = "run-1", project: str = PROJECT) -> Plan:
    return Plan(
        project=project,
        project_name="demo",
        run=run,
        requester="alice",
        created=NOW,
        not_after=LATER,
        nonce="a" * 32,
        operations=(PlannedOperation(name="test", seal=digest_of(b"seal")),),
        policy=policy.digest,
        policy_name="two-eyes",
        reviewers=policy.reviewers_digest,
        disclosure=Disclosure(why="to see", operations=()),
    )


def make_changeset(*paths: bytes, kind: EntryType = "file") -> Changeset:
    node = Node(type=kind, mode="100644", size=1, digest=digest_of(b"x"))
    return Changeset(
        base=digest_of(b"base"),
        result=digest_of(b"result"),
        changes=tuple(Change(path, None, node) for path in sorted(paths)),
    )


def sign(
    terms: Terms,
    signer: FakeSigner,
    reviewer: str,
    *,
    decision: Decision = "approve",
    received: str = NOW,
    not_after: str = LATER,
    namespace: str | None = None,
) -> ReceivedApproval:
    statement = build_approval(
        terms, decision=decision, reviewer=reviewer, issued_on=NOW, not_after=not_after
    ).to_bytes()
    return ReceivedApproval(
        statement=statement,
        signature=signer.sign(statement, namespace or NAMESPACES[terms.gate]),
        received=received,
    )


def circumstances(
    policy: ApprovalPolicy,
    approvals: Iterable[ReceivedApproval] = (),
    *,
    project: str = PROJECT,
    reviewers: bytes = REVIEWERS,
    now: str = NOW,
    spent: bool = False,
    demo_project: bool = False,
) -> Circumstances:
    return Circumstances(
        project=project,
        policy=policy,
        reviewers=reviewers,
        approvals=tuple(approvals),
        now=now,
        spent=spent,
        demo_project=demo_project,
    )
