"""How many persons must approve, and which: the policy's numbers made into requirements. Pure.

Rules:
    * A threshold k is 1 <= k <= n, where n is how many persons could approve. Zero would be no
      check; more than n could never be met.
    * Every requirement must be met: a rule can only tighten what the policy asks for anyway.
    * A rule looks at every changed path, deletions too, and at a folder under its name with `/`.
    * One person is one, however many keys sign; one key is one, whatever names it bears.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pathspec

from harness.errors import InputError, Issue
from harness.governance.approvals import VerifiedApproval
from harness.governance.reviewers import Reviewers
from harness.model.approval import NAMESPACES, Gate
from harness.model.changeset import Change
from harness.model.policy import ApprovalPolicy, PathRule

MAX_VALID_MS = 366 * 24 * 3600 * 1000
"""The longest a policy may let an approval stand, in milliseconds: a leap year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """So many of these persons.

    Attributes:
        reason: what asks for it, for messages.
        needed: how many distinct persons.
        eligible: the persons who count.
    """

    reason: str
    needed: int
    eligible: frozenset[str]

    def count(self, approvals: Iterable[VerifiedApproval]) -> tuple[str, ...]:
        """Return the distinct persons who count, sorted; never more than there are keys."""
        by_point = {
            approval.key.point: approval.person
            for approval in approvals
            if approval.person in self.eligible
        }
        return tuple(sorted(set(by_point.values())))


def check_policy(policy: ApprovalPolicy, reviewers: Reviewers, *, requester: str) -> None:
    """Check that a policy asks for something, and for nothing impossible; done when sealing too.

    Raises:
        InputError: with every threshold or term out of range, unknown reviewer, and bad pattern.
    """
    issues = [
        issue
        for gate in NAMESPACES
        for requirement in _all_requirements(policy, reviewers, gate, requester)
        if (issue := _find_range_issue(requirement)) is not None
    ]
    for number, rule in enumerate(policy.rules, start=1):
        issues += _find_rule_issues(rule, f"rule {number}", reviewers)
    if not 1 <= policy.valid_ms <= MAX_VALID_MS:
        issues.append(
            Issue(message=f"term: expected 1 ms to {MAX_VALID_MS} ms, got {policy.valid_ms} ms")
        )
    if issues:
        raise InputError("approval policy: cannot be met as written", issues=tuple(issues))


def plan_requirements(
    policy: ApprovalPolicy, reviewers: Reviewers, *, requester: str
) -> tuple[Requirement, ...]:
    """Return what a plan needs before it runs.

    Raises:
        InputError: the policy cannot be met as written.
    """
    check_policy(policy, reviewers, requester=requester)
    return (_base_requirement(policy, reviewers, "plan", requester),)


def diff_requirements(
    policy: ApprovalPolicy, reviewers: Reviewers, changes: Sequence[Change], *, requester: str
) -> tuple[Requirement, ...]:
    """Return what a diff needs before it lands: the policy's number, and each rule it touches.

    Raises:
        InputError: the policy cannot be met as written.
    """
    check_policy(policy, reviewers, requester=requester)
    paths = [spelling for change in changes for spelling in _spell(change)]
    touched = [
        _rule_requirement(policy, reviewers, number, requester)
        for number, rule in enumerate(policy.rules, start=1)
        if any(map(pathspec.GitIgnoreSpec.from_lines(rule.paths).match_file, paths))
    ]
    return (_base_requirement(policy, reviewers, "diff", requester), *touched)


def _all_requirements(
    policy: ApprovalPolicy, reviewers: Reviewers, gate: Gate, requester: str
) -> list[Requirement]:
    rules = range(1, len(policy.rules) + 1) if gate == "diff" else ()
    return [
        _base_requirement(policy, reviewers, gate, requester),
        *(_rule_requirement(policy, reviewers, number, requester) for number in rules),
    ]


def _base_requirement(
    policy: ApprovalPolicy, reviewers: Reviewers, gate: Gate, requester: str
) -> Requirement:
    return Requirement(
        reason=f"{gate} approvals",
        needed=policy.plan_approvals if gate == "plan" else policy.diff_approvals,
        eligible=_eligible(policy, reviewers, gate, requester),
    )


def _rule_requirement(
    policy: ApprovalPolicy, reviewers: Reviewers, number: int, requester: str
) -> Requirement:
    rule = policy.rules[number - 1]
    eligible = _eligible(policy, reviewers, "diff", requester)
    if rule.reviewers:
        eligible &= {reviewers.person_of(name) or name for name in rule.reviewers}
    return Requirement(
        reason=f"rule {number} ({', '.join(rule.paths)})",
        needed=rule.approvals,
        eligible=eligible,
    )


def _eligible(
    policy: ApprovalPolicy, reviewers: Reviewers, gate: Gate, requester: str
) -> frozenset[str]:
    persons = reviewers.persons(NAMESPACES[gate])
    if policy.exclude_requester:
        persons -= {reviewers.person_of(requester) or requester}
    return persons


def _find_range_issue(requirement: Requirement) -> Issue | None:
    able = len(requirement.eligible)
    if 1 <= requirement.needed <= able:
        return None
    if requirement.needed < 1:
        return Issue(message=f"{requirement.reason}: expected at least 1, got {requirement.needed}")
    return Issue(
        message=f"{requirement.reason}: expected at most {able}, the number of persons who could "
        f"approve, got {requirement.needed}",
        fix="lower the number, or list more reviewers",
    )


def _find_rule_issues(rule: PathRule, where: str, reviewers: Reviewers) -> list[Issue]:
    issues = [
        Issue(message=f"reviewer {name!r:.80} is not in the reviewers file", where=where)
        for name in rule.reviewers
        if reviewers.person_of(name) is None
    ]
    if not rule.paths:
        issues.append(Issue(message="expected at least one pattern, got none", where=where))
    issues += [
        Issue(
            message=f"pattern {pattern!r:.80} never asks for anything",
            where=where,
            fix="write a gitignore-style pattern; a rule can only tighten, so not with !",
        )
        for pattern in rule.paths
        if not _asks_for_something(pattern)
    ]
    return issues


def _asks_for_something(pattern: str) -> bool:
    try:
        parsed = pathspec.GitIgnoreSpec.from_lines([pattern]).patterns
    except ValueError:
        return False
    return pattern.isprintable() and any(item.include is True for item in parsed)


def _spell(change: Change) -> list[str]:
    """Return a changed path as patterns see it: with `/` at its end where it is a folder."""
    # A line end would stop a pattern's `.*`. No pattern holds one, so another character serves.
    text = change.path.decode("utf-8", "surrogateescape").replace("\n", "\r")
    types = {node.type for node in (change.before, change.after) if node is not None}
    return [text + "/" if kind == "folder" else text for kind in sorted(types)]
