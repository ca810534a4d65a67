"""A gate as a person meets it: a plan or a diff, found by hash, with what belongs to it.

Both gates are opened in the same way: the thing, the plan it belongs to, the policy and reviewers
as they are *now*, and what was received so far. The decision itself is `harness.governance`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import (
    ApprovalInvalidError,
    AuthorityError,
    ContainmentError,
    InputError,
    Issue,
)
from harness.flows.lookup import pick_exact_diff, pick_exact_plan
from harness.flows.policies import read_policy_named
from harness.flows.quarantined import Quarantine, load_quarantine
from harness.flows.session import Session, now_text
from harness.governance.approvals import Terms, diff_terms, plan_terms
from harness.governance.authority import Circumstances, decide_diff, decide_plan
from harness.governance.grants import collect_approvals, is_spent
from harness.model.approval import Approved, Gate
from harness.model.changeset import Changeset
from harness.model.digest import Digest, short
from harness.model.entry import Entry
from harness.model.limits import Isolation, stricter
from harness.model.plan import Plan, parse_plan
from harness.model.policy import Policy
from harness.model.relpath import show
from harness.model.seal import Seal, parse_seal


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedOperation:
    """One operation of a plan with its seal.

    Attributes:
        name: of the operation.
        digest: of the seal.
        seal: what would be executed.
        needs: names of operations before it that must pass first.
    """

    name: str
    digest: Digest
    seal: Seal
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """One gate, ready to be decided on or decided.

    Attributes:
        gate: plan or diff.
        plan: the plan; for a diff, that of the run it came from.
        operations: what the plan executes, in order.
        terms: what an approval must be about.
        policy: as it is now.
        quarantine: the diff and what belongs to it; None for a plan.
    """

    gate: Gate
    plan: Plan
    operations: tuple[SealedOperation, ...]
    terms: Terms
    policy: Policy
    quarantine: Quarantine | None


def load_plan(session: Session, digest: Digest) -> tuple[Plan, tuple[SealedOperation, ...]]:
    """Return a plan and its operations from the store, checked against their digests.

    Raises:
        VerificationError: the stored bytes are missing or differ.
        InputError: they are malformed.
    """
    plan = parse_plan(session.blobs.get(digest))
    operations = []
    for planned in plan.operations:
        seal = parse_seal(session.blobs.get(planned.seal))
        operations.append(
            SealedOperation(
                name=planned.name or seal.recipe["name"],
                digest=planned.seal,
                seal=seal,
                needs=planned.needs,
            )
        )
    return plan, tuple(operations)


def open_gate(session: Session, entries: Sequence[Entry], digest: Digest) -> OpenGate:
    """Find what a full hash names, a plan or a diff of this project.

    Raises:
        InputError: this project has neither.
        VerificationError: stored bytes are missing or differ.
    """
    found = pick_exact_plan(entries, session.project.id, digest)
    if found is not None:
        return open_plan_gate(session, digest)
    waiting = pick_exact_diff(entries, session.project.id, digest)
    if waiting is None:
        raise InputError(
            f"hash: no plan and no diff of this project has {short(digest)}",
            hint="`harness plan list` and `harness runs list` show them",
        )
    quarantine = load_quarantine(session, waiting)
    plan, operations = load_plan(session, waiting.plan)
    return OpenGate(
        gate="diff",
        plan=plan,
        operations=operations,
        terms=diff_terms(quarantine.changeset, plan, waiting.nonce),
        policy=read_policy_named(session, plan.policy_name),
        quarantine=quarantine,
    )


def open_plan_gate(session: Session, digest: Digest) -> OpenGate:
    """Open the gate of one plan of this project.

    Raises:
        VerificationError: stored bytes are missing or differ.
    """
    plan, operations = load_plan(session, digest)
    return OpenGate(
        gate="plan",
        plan=plan,
        operations=operations,
        terms=plan_terms(plan),
        policy=read_policy_named(session, plan.policy_name),
        quarantine=None,
    )


def refuse_what_cannot_land(quarantine: Quarantine) -> None:
    """Refuse a diff that could not land whoever approved it.

    Raises:
        AuthorityError: the run that made it did not pass.
        ContainmentError: paths that may not land; every one with its reason.
    """
    if quarantine.record.outcome != "passed":
        raise AuthorityError(
            f"diff {short(quarantine.changeset.digest)}: is of a run that ended as "
            f"{quarantine.record.outcome}; only changes of a run that passed can land",
            hint="mend what failed, seal and run again",
        )
    if quarantine.obstacles:
        raise ContainmentError(
            f"diff {short(quarantine.changeset.digest)}: holds paths that may not land",
            issues=tuple(
                Issue(message=reason, where=show(path)) for path, reason in quarantine.obstacles
            ),
        )


def circumstances(session: Session, entries: Sequence[Entry], gate: OpenGate) -> Circumstances:
    """Gather what a decision on a gate is made on, from the ledger and the project as they are."""
    last = entries[-1].time if entries else ""
    return Circumstances(
        project=session.project.id,
        policy=gate.policy.approval,
        reviewers=gate.policy.reviewers,
        approvals=collect_approvals(entries, gate.terms, session.blobs.get),
        now=max(now_text(), last),
        spent=is_spent(entries, gate.terms.nonce),
        demo_project=session.project.demo,
    )


def decide_plan_gate(session: Session, entries: Sequence[Entry], gate: OpenGate) -> Approved[Plan]:
    """Decide on a plan gate.

    Raises:
        ApprovalInvalidError: the plan was sealed with more than its policy gives now.
        HarnessError: as `harness.governance.authority.decide_plan`.
    """
    _refuse_wider_isolation(gate)
    return decide_plan(gate.plan, circumstances(session, entries, gate))


def _refuse_wider_isolation(gate: OpenGate) -> None:
    """Hold what was sealed against the isolation as it is now.

    The policy digest of a plan does not cover it, and who tightens it means waiting plans, too.
    """
    now = gate.policy.isolation
    sealed = [Isolation.from_json(item.seal.isolation) for item in gate.operations]
    if any(stricter(now, given) != given for given in sealed):
        raise ApprovalInvalidError(
            f"policy {gate.policy.name}: gives less now than plan {short(gate.plan.digest)} was "
            "sealed with",
            hint="the policy was edited after the plan was sealed; seal again",
        )


def decide_diff_gate(
    session: Session, entries: Sequence[Entry], gate: OpenGate
) -> Approved[Changeset]:
    """Decide on a diff gate; see `harness.governance.authority.decide_diff` for what is raised."""
    if gate.quarantine is None:
        raise RuntimeError("decide_diff_gate needs a diff")
    return decide_diff(
        gate.quarantine.changeset,
        circumstances(session, entries, gate),
        plan=gate.plan,
        nonce=gate.terms.nonce,
    )
