"""Requirements: thresholds within reason, rules over changed paths."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.governance.reviewers import parse_reviewers
from harness.governance.thresholds import (
    MAX_VALID_MS,
    check_policy,
    diff_requirements,
    plan_requirements,
)
from harness.model.changeset import Change
from harness.model.digest import digest_of
from harness.model.policy import ApprovalPolicy, PathRule
from harness.model.tree import Node
from tests.fakes.approval_case import ALICE, BOB, REVIEWERS, make_changeset, make_policy

PEOPLE = parse_reviewers(REVIEWERS)


def issues_of(policy: ApprovalPolicy, requester: str = "nobody") -> list[str]:
    with pytest.raises(InputError, match="approval policy: cannot be met") as caught:
        check_policy(policy, PEOPLE, requester=requester)
    return [str(issue) for issue in caught.value.issues]


def asks(pattern: str, *changes: Change) -> bool:
    policy = make_policy(rules=(PathRule(paths=(pattern,), approvals=2),))
    return len(diff_requirements(policy, PEOPLE, changes, requester="x")) == 2


@pytest.mark.parametrize("k", [0, -1])
def test_a_threshold_below_one_is_no_check_and_is_refused(k: int) -> None:
    assert issues_of(make_policy(plan=k)) == [f"plan approvals: expected at least 1, got {k}"]


def test_a_threshold_that_can_not_be_met_is_refused() -> None:
    (issue,) = issues_of(make_policy(diff=4))
    assert "diff approvals: expected at most 3" in issue


@pytest.mark.parametrize("requester", ["alice", "alice@example.org"])
def test_the_requester_is_not_among_those_who_could_approve(requester: str) -> None:
    policy = make_policy(plan=3, exclude_requester=True)
    (issue,) = issues_of(policy, requester)
    assert "plan approvals: expected at most 2" in issue
    check_policy(policy, PEOPLE, requester="a visitor")


def test_only_keys_for_the_gate_count_towards_what_is_possible() -> None:
    text = (
        f'alice namespaces="plan-approval@harness" {ALICE.public_text}\nbob {BOB.public_text}\n'
    ).encode()
    with pytest.raises(InputError) as caught:
        check_policy(
            make_policy(plan=2, diff=2, reviewers=text), parse_reviewers(text), requester="x"
        )
    (issue,) = caught.value.issues
    assert issue.message.startswith("diff approvals: expected at most 1")


def test_every_mistake_of_every_rule_is_reported() -> None:
    rules = (
        PathRule(paths=(), approvals=1),
        PathRule(paths=("!a", "# b", "", "/", "\\", "a\nb", "ok"), approvals=1),
        PathRule(paths=("c",), approvals=2, reviewers=("bob", "mallory")),
        PathRule(paths=("d",), approvals=0),
    )
    found = issues_of(make_policy(rules=rules, valid_ms=0))
    assert len([issue for issue in found if "never asks for anything" in issue]) == 6
    assert "rule 1: expected at least one pattern, got none" in found
    assert "rule 3: reviewer 'mallory' is not in the reviewers file" in found
    assert any("rule 3 (c): expected at most 1" in issue for issue in found)
    assert "rule 4 (d): expected at least 1, got 0" in found
    assert f"term: expected 1 ms to {MAX_VALID_MS} ms, got 0 ms" in found


def test_a_plan_asks_for_the_policy_number_and_rules_are_for_diffs() -> None:
    policy = make_policy(plan=2, rules=(PathRule(paths=("*",), approvals=3),))
    (requirement,) = plan_requirements(policy, PEOPLE, requester="x")
    assert requirement.needed == 2
    assert requirement.eligible == {"alice", "bob", "carol"}


def test_a_touched_rule_adds_its_requirement_with_its_persons() -> None:
    rules = (
        PathRule(paths=("docs/",), approvals=1),
        PathRule(
            paths=("/src/**/*.c", "*.key"), approvals=2, reviewers=("alice@example.org", "bob")
        ),
    )
    changes = make_changeset(b"src/a/b.c", b"README").changes
    base, rule = diff_requirements(make_policy(rules=rules), PEOPLE, changes, requester="x")
    assert base.needed == 1
    assert rule.reason == "rule 2 (/src/**/*.c, *.key)"
    assert rule.needed == 2
    assert rule.eligible == {"alice", "bob"}


NODE = Node(type="file", mode="100644", size=1, digest=digest_of(b"x"))
FOLDER = Node(type="folder", mode="040000", size=1, digest=digest_of(b"y"))


def test_both_sides_of_a_change_are_looked_at() -> None:
    assert asks("secret", Change(b"secret", NODE, None))
    assert asks("secret", Change(b"secret", None, NODE))
    assert asks("data/", Change(b"data", FOLDER, NODE)), "a folder that became a file"
    assert asks("data/", Change(b"data", NODE, FOLDER)), "a file that became a folder"
    assert not asks("data/", Change(b"data", NODE, None)), "only ever a file"


@pytest.mark.parametrize(
    "path", [b"docs/a", b"x/docs/a", b"docs/\xff\xfe", b"docs/a\nb", b"a\nb/docs/c", b"docs/\r"]
)
def test_no_spelling_of_a_name_slips_past_a_rule(path: bytes) -> None:
    assert asks("docs/", Change(path, None, NODE))


def test_a_rule_that_is_not_touched_asks_for_nothing() -> None:
    assert not asks("docs/", Change(b"src/docs.py", None, NODE))
