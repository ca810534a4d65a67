"""A plan: one or more seals, what the approver is told, and who must approve.

A plan adds what makes one run one run: project, run id, requester, nonce, expiry, approval policy
and reviewers' digest. Its operations run in the order in which they stand here.

Two versions are known. v1 held one seal and no name for it; v2 lists operations. A plan keeps the
version it was written in, so that its hash never changes (`docs/decisions/0009`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest

PLAN_KIND = "harness/plan/v2"
PLAN_KIND_V1 = "harness/plan/v1"

MAX_OPERATIONS = 128
"""Most operations of one plan: what a person can look at, and a ledger entry can list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperation:
    """One operation of a plan.

    Attributes:
        name: its recipe's name, or `recipe:key=value,...` for a matrix cell; empty in a plan of
            v1, where the seal says it.
        seal: digest of what would be executed.
        needs: names of operations before it that must pass first.
    """

    name: str
    seal: Digest
    needs: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {"name": self.name, "seal": self.seal, "needs": list(self.needs)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosedOperation:
    """What an approver is told of one operation beside its seal.

    Attributes:
        alternative: the commands that would do the same without a sandbox, as shell words.
        expected_ms: median wall time of its passed runs; 0 when there are none.
        expected_from: number of those runs.
        files: number of files in its snapshot.
        bytes: their size together.
        left_out: path and reason of what looked as if it should enter and did not.
    """

    alternative: tuple[str, ...]
    expected_ms: int
    expected_from: int
    files: int
    bytes: int
    left_out: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "alternative": list(self.alternative),
            "expectedMs": self.expected_ms,
            "expectedFromRuns": self.expected_from,
            "files": self.files,
            "bytes": self.bytes,
            "leftOut": [{"path": path, "reason": reason} for path, reason in self.left_out],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What an approver is told.

    Attributes:
        why: why it should run.
        operations: of each operation, in their order.
    """

    why: str
    operations: tuple[DisclosedOperation, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {"why": self.why, "operations": [item.to_json() for item in self.operations]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a person approves; its digest is the plan hash.

    Attributes:
        project: the project's id.
        project_name: its name, for people.
        run: the run id this plan is for.
        requester: who asked.
        created: RFC 3339 time.
        not_after: RFC 3339 time after which it can't be approved or run.
        nonce: 128 random bits as 32 hex digits; spent by the ledger entry of the run.
        operations: what runs, in this order.
        policy_name: name of the policy file.
        policy: digest of the approval policy.
        reviewers: digest of the reviewers file.
        disclosure: what the approver is told.
        kind: the version it was written in.
    """

    project: str
    project_name: str
    run: str
    requester: str
    created: str
    not_after: str
    nonce: str
    operations: tuple[PlannedOperation, ...]
    policy_name: str
    policy: Digest
    reviewers: Digest
    disclosure: Disclosure
    kind: str = PLAN_KIND

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the plan hash."""
        versioned = _members_v1(self) if self.kind == PLAN_KIND_V1 else _members(self)
        return canonical_bytes(
            {
                "_type": self.kind,
                "project": self.project,
                "projectName": self.project_name,
                "run": self.run,
                "requester": self.requester,
                "created": self.created,
                "notAfter": self.not_after,
                "nonce": self.nonce,
                **versioned,
                "policyName": self.policy_name,
                "policy": self.policy,
                "reviewers": self.reviewers,
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the plan hash."""
        return digest_of(self.to_bytes())


def _members(plan: Plan) -> dict[str, Any]:
    return {
        "operations": [item.to_json() for item in plan.operations],
        "disclosure": plan.disclosure.to_json(),
    }


def _members_v1(plan: Plan) -> dict[str, Any]:
    """Return what v1 wrote otherwise: one seal, and a flat disclosure."""
    (told,) = plan.disclosure.operations
    return {
        "seals": [item.seal for item in plan.operations],
        "disclosure": {"why": plan.disclosure.why, **told.to_json()},
    }


def parse_plan(data: bytes) -> Plan:
    """Read a plan of any version.

    Raises:
        InputError: not canonical, malformed, or its operations do not fit together.
    """
    value = parse_canonical(data, PLAN_KIND, PLAN_KIND_V1)
    kind = value["_type"]
    try:
        plan = Plan(
            project=value["project"],
            project_name=value["projectName"],
            run=value["run"],
            requester=value["requester"],
            created=value["created"],
            not_after=value["notAfter"],
            nonce=value["nonce"],
            operations=_read_operations(value, kind),
            policy_name=value["policyName"],
            policy=parse_digest(value["policy"]),
            reviewers=parse_digest(value["reviewers"]),
            disclosure=_read_disclosure(value["disclosure"], kind),
            kind=kind,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"plan: malformed: {error}") from error
    if plan.to_bytes() != data:
        raise InputError("plan: has unknown or missing members")
    check_operations(plan.operations)
    return plan


def check_operations(operations: tuple[PlannedOperation, ...]) -> None:
    """Check that operations have names of their own and need only what stands before them.

    Raises:
        InputError: they do not fit together.
    """
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        raise InputError(
            f"plan: expected 1 to {MAX_OPERATIONS} operations, got {len(operations)}",
            hint="seal fewer recipes at once, or a smaller matrix",
        )
    before: set[str] = set()
    for operation in operations:
        if operation.name in before:
            raise InputError(f"plan: the operation {operation.name!r:.80} is here twice")
        unknown = [name for name in operation.needs if name not in before]
        if unknown:
            raise InputError(
                f"plan: {operation.name!r:.80} needs {unknown[0]!r:.80}, which does not run before"
            )
        before.add(operation.name)


def _read_operations(value: Mapping[str, Any], kind: str) -> tuple[PlannedOperation, ...]:
    if kind == PLAN_KIND_V1:
        (seal,) = value["seals"]
        return (PlannedOperation(name="", seal=parse_digest(seal)),)
    return tuple(
        PlannedOperation(
            name=str(item["name"]), seal=parse_digest(item["seal"]), needs=tuple(item["needs"])
        )
        for item in value["operations"]
    )


def _read_disclosure(value: Mapping[str, Any], kind: str) -> Disclosure:
    operations = [value] if kind == PLAN_KIND_V1 else value["operations"]
    return Disclosure(
        why=value["why"],
        operations=tuple(
            DisclosedOperation(
                alternative=tuple(item["alternative"]),
                expected_ms=item["expectedMs"],
                expected_from=item["expectedFromRuns"],
                files=item["files"],
                bytes=item["bytes"],
                left_out=tuple((out["path"], out["reason"]) for out in item["leftOut"]),
            )
            for item in operations
        ),
    )
