"""The two gates: whether a plan may run, and whether a diff may land. Pure decisions.

Only this module makes an `Approved` value. A decision takes raw statements and signatures, as the
ledger kept them, and verifies each one itself: nothing that was checked earlier is taken on trust.

What the caller still owes: the policy and the reviewers file *as they are now*, the ledger's
entries verified, and the nonce spent on the ledger (`grants.guard_grant`) before any effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.errors import (
    ApprovalConsumedError,
    ApprovalExpiredError,
    ApprovalInvalidError,
    ApprovalMissingError,
    ApprovalRejectedError,
    AuthorityError,
    Issue,
)
from harness.governance.approvals import (
    ReceivedApproval,
    Terms,
    VerifiedApproval,
    diff_terms,
    good_until,
    open_reviewers,
    plan_terms,
    verify_approval,
)
from harness.governance.reviewers import Reviewers
from harness.governance.thresholds import Requirement, diff_requirements, plan_requirements
from harness.model.approval import _MAKER, Approved
from harness.model.changeset import Changeset
from harness.model.clock import parse_time
from harness.model.digest import short
from harness.model.plan import Plan
from harness.model.policy import ApprovalPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a decision is made on, beside the thing itself.

    Attributes:
        project: id of the project at hand.
        policy: the approval policy as it is now.
        reviewers: exact bytes of the reviewers file as it is now.
        approvals: every approval and rejection received for this subject, unverified.
        now: RFC 3339 time; give the later of the clock and the ledger's last entry.
        spent: whether the ledger says that the gate's nonce is spent.
        demo_project: whether the project is the demonstration's own.
    """

    project: str
    policy: ApprovalPolicy
    reviewers: bytes
    approvals: Sequence[ReceivedApproval]
    now: str
    spent: bool
    demo_project: bool = False


def decide_plan(plan: Plan, given: Circumstances) -> Approved[Plan]:
    """Decide whether a plan may run.

    1. Policy, reviewers file and project are those the plan was sealed with.
    2. The policy's throw-away key is used in the demonstration only.
    3. The plan is not past its end, and its nonce not spent.
    4. No reviewer rejected it.
    5. Every requirement is met by distinct persons whose approvals hold now.

    Returns:
        The plan with the approvals that count.

    Raises:
        ApprovalInvalidError: 1 is not so.
        AuthorityError: 2 is not so.
        ApprovalExpiredError: the plan is past its end.
        ApprovalConsumedError: its nonce is spent.
        ApprovalRejectedError: a reviewer said no.
        ApprovalMissingError: fewer approvals than asked for.
        InputError: the policy or the reviewers file can't be met or read as written.
    """
    reviewers = _check_setting(plan, given)
    # A plan that ran says so for ever, also past its end.
    if not given.spent and parse_time(given.now) > parse_time(plan.not_after):
        raise ApprovalExpiredError(
            f"plan {short(plan.digest)}: expected use before {plan.not_after}, got {given.now}"
        )
    requirements = plan_requirements(given.policy, reviewers, requester=plan.requester)
    return _decide(plan, plan_terms(plan), given, reviewers, requirements)


def decide_diff(
    changeset: Changeset, given: Circumstances, *, plan: Plan, nonce: str
) -> Approved[Changeset]:
    """Decide whether a diff may land.

    The obligations are those of a plan, but that the plan's own end does not matter any more: it
    ran. The requirements grow with the rules whose paths the diff touches.

    Args:
        changeset: the quarantined changes.
        given: what the decision is made on.
        plan: the plan of the run they came from.
        nonce: the diff gate's own nonce.

    Returns:
        The changeset with the approvals that count.

    Raises:
        ApprovalInvalidError: another policy, reviewers file or project.
        AuthorityError: a throw-away key outside the demonstration.
        ApprovalConsumedError: the nonce is spent.
        ApprovalRejectedError: a reviewer said no.
        ApprovalMissingError: fewer approvals than asked for.
        InputError: the policy or the reviewers file can't be met or read as written.
    """
    reviewers = _check_setting(plan, given)
    requirements = diff_requirements(
        given.policy, reviewers, changeset.changes, requester=plan.requester
    )
    return _decide(changeset, diff_terms(changeset, plan, nonce), given, reviewers, requirements)


def _check_setting(plan: Plan, given: Circumstances) -> Reviewers:
    """Return the reviewers, once policy, file and project are shown to be the plan's."""
    if given.project != plan.project:
        raise ApprovalInvalidError(
            f"plan {short(plan.digest)}: expected project {plan.project}, got {given.project}"
        )
    if given.policy.digest != plan.policy:
        raise ApprovalInvalidError(
            f"policy: expected {plan.policy}, got {given.policy.digest}",
            hint="the policy was edited after the plan was sealed; seal again",
        )
    if given.policy.reviewers_digest != plan.reviewers:
        raise ApprovalInvalidError(
            f"reviewers file: expected {plan.reviewers}, got {given.policy.reviewers_digest}",
            hint="the plan and its policy name different reviewers files; seal again",
        )
    reviewers = open_reviewers(given.policy, given.reviewers)
    if given.policy.throwaway and not given.demo_project:
        raise AuthorityError(
            "policy: is for the demonstration's throw-away key, and this is another project",
            hint="write a policy of your own, with your reviewers' keys: `harness init`",
        )
    return reviewers


def _decide(
    value: T,
    terms: Terms,
    given: Circumstances,
    reviewers: Reviewers,
    requirements: tuple[Requirement, ...],
) -> Approved[T]:
    subject = f"{terms.gate} {short(terms.subject)}"
    if given.spent:
        raise ApprovalConsumedError(f"{subject}: its one-time approval is spent already")
    verified, refused = _verify_all(terms, given, reviewers)
    for item in verified:
        if item.signed.approval.decision == "reject":
            raise ApprovalRejectedError(f"{subject}: was rejected by {item.person}")
    eligible = frozenset[str]().union(*(requirement.eligible for requirement in requirements))
    counting: dict[str, VerifiedApproval] = {}
    for item in verified:
        if (reason := _why_not(item, given, eligible)) is None:
            counting.setdefault(item.person, item)
        else:
            refused.append(f"{item.person} ({reason})")
    _refuse_unmet(subject, requirements, tuple(counting.values()), refused)
    return Approved(value, tuple(item.signed for item in counting.values()), maker=_MAKER)


def _verify_all(
    terms: Terms, given: Circumstances, reviewers: Reviewers
) -> tuple[list[VerifiedApproval], list[str]]:
    """Return what holds, in order of receipt, and why the rest does not."""
    verified: list[VerifiedApproval] = []
    refused: list[str] = []
    in_order = sorted(
        given.approvals, key=lambda item: (item.received, item.statement, item.signature)
    )
    for received in in_order:
        try:
            item = verify_approval(received, terms=terms, policy=given.policy, reviewers=reviewers)
        except AuthorityError as error:
            refused.append(f"one ({error.message})")
            continue
        if received.stale and item.signed.approval.decision == "approve":
            refused.append(f"{item.person} (came before the state was restored from a backup)")
        else:
            verified.append(item)
    return verified, refused


def _why_not(item: VerifiedApproval, given: Circumstances, eligible: frozenset[str]) -> str | None:
    """Return why an approval that holds does not count now, or None."""
    end = good_until(item.signed, given.policy)
    if parse_time(given.now) > parse_time(end):
        return f"expired {end}"
    if item.person not in eligible:
        return "asked for the run"
    return None


def _refuse_unmet(
    subject: str,
    requirements: tuple[Requirement, ...],
    counting: tuple[VerifiedApproval, ...],
    refused: list[str],
) -> None:
    unmet: list[Issue] = []
    for requirement in requirements:
        persons = requirement.count(counting)
        if (missing := requirement.needed - len(persons)) > 0:
            names = f": {', '.join(persons)}" if persons else ""
            tally = f"{len(persons)} of {requirement.needed}{names}; missing {missing}"
            unmet.append(Issue(message=f"{requirement.reason}: {tally}"))
    if unmet:
        reasons = "; ".join(dict.fromkeys(refused))
        raise ApprovalMissingError(
            f"{subject}: {unmet[0].message}" + (f"; not counted: {reasons}" if reasons else ""),
            issues=tuple(unmet),
        )
