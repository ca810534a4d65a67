"""The gates: one success and every refusal; properties of thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import (
    ApprovalConsumedError,
    ApprovalExpiredError,
    ApprovalInvalidError,
    ApprovalMissingError,
    ApprovalRejectedError,
    AuthorityError,
    InputError,
)
from harness.governance.approvals import ReceivedApproval, Terms, diff_terms, plan_terms
from harness.governance.authority import decide_diff, decide_plan
from harness.model.approval import Approved
from harness.model.policy import PathRule
from tests.fakes.approval_case import (
    ALICE,
    ALICE_TWO,
    BOB,
    CAROL,
    DIFF_NONCE,
    LATER,
    NOW,
    PROJECT,
    REVIEWERS,
    STRANGER,
    circumstances,
    make_changeset,
    make_plan,
    make_policy,
    sign,
)
from tests.fakes.ssh_signer import FakeSigner

POLICY = make_policy(plan=2, diff=2)
PLAN = make_plan(POLICY)
TERMS = plan_terms(PLAN)
BY_ALICE = sign(TERMS, ALICE, "alice")
BY_ALICE_TWO = sign(TERMS, ALICE_TWO, "alice")
BY_ALIAS = sign(TERMS, ALICE_TWO, "alice@example.org")
BY_BOB = sign(TERMS, BOB, "bob")
BY_CAROL = sign(TERMS, CAROL, "carol")
NO_BY_BOB = sign(TERMS, BOB, "bob", decision="reject")

SIGNED_BY = {"alice": ALICE, "bob": BOB, "carol": CAROL}


def test_a_plan_with_enough_approvals_may_run() -> None:
    approved = decide_plan(PLAN, circumstances(POLICY, [BY_BOB, BY_ALICE]))
    assert approved.value == PLAN
    assert {item.approval.reviewer for item in approved.approvals} == {"alice", "bob"}


def test_nobody_else_makes_an_approved_value() -> None:
    with pytest.raises(RuntimeError, match=r"only harness\.governance"):
        Approved(PLAN, (), maker=object())


@pytest.mark.parametrize(
    "approvals",
    [
        [],
        [BY_ALICE],
        [BY_ALICE, BY_ALICE],
        [BY_ALICE, BY_ALICE_TWO],
        [BY_ALICE, BY_ALIAS, BY_ALICE_TWO],
    ],
)
def test_one_person_is_one_however_many_keys_and_names(approvals: list[ReceivedApproval]) -> None:
    with pytest.raises(ApprovalMissingError, match=r"plan \S{12}: plan approvals: [01] of 2"):
        decide_plan(PLAN, circumstances(POLICY, approvals))


def test_what_is_missing_and_what_did_not_count_is_said() -> None:
    early_end = sign(TERMS, BOB, "bob", not_after="2026-06-01T12:30:00.000Z")
    stranger = sign(TERMS, STRANGER, "carol")
    given_ = circumstances(POLICY, [BY_ALICE, early_end, stranger], now="2026-06-01T13:00:00.000Z")
    with pytest.raises(ApprovalMissingError) as caught:
        decide_plan(PLAN, given_)
    message = caught.value.message
    assert "plan approvals: 1 of 2: alice; missing 1; not counted: " in message
    assert "bob (expired 2026-06-01T12:30:00.000Z)" in message
    assert "is not in the reviewers file" in message
    assert "harness approve" in caught.value.hint


def test_an_invalid_approval_never_blocks_the_others() -> None:
    junk = ReceivedApproval(statement=b"{}", signature=b"junk", received=NOW)
    approved = decide_plan(PLAN, circumstances(POLICY, [junk, BY_ALICE, BY_BOB, junk]))
    assert len(approved.approvals) == 2


def test_a_rejection_vetoes_whatever_else_is_there() -> None:
    everybody = [BY_ALICE, BY_BOB, BY_CAROL, NO_BY_BOB]
    with pytest.raises(ApprovalRejectedError, match=r"plan \S{12}: was rejected by bob"):
        decide_plan(PLAN, circumstances(POLICY, everybody))


def test_an_approval_from_before_a_restore_counts_no_more_and_a_rejection_does() -> None:
    stale = replace(sign(TERMS, ALICE, "alice"), stale=True)
    with pytest.raises(ApprovalMissingError, match=r"alice .came before the state was restored"):
        decide_plan(PLAN, circumstances(POLICY, [stale, sign(TERMS, BOB, "bob")]))
    no = replace(sign(TERMS, ALICE, "alice", decision="reject"), stale=True)
    with pytest.raises(ApprovalRejectedError, match="was rejected by alice"):
        decide_plan(PLAN, circumstances(POLICY, [no, sign(TERMS, BOB, "bob")]))


def test_a_rejection_does_not_expire_with_its_statement() -> None:
    brief = sign(TERMS, BOB, "bob", decision="reject", not_after="2026-06-01T12:00:01.000Z")
    with pytest.raises(ApprovalRejectedError):
        decide_plan(PLAN, circumstances(POLICY, [BY_ALICE, BY_CAROL, brief], now=LATER))


def test_a_rejection_by_somebody_else_is_no_veto() -> None:
    no = sign(TERMS, STRANGER, "bob", decision="reject")
    assert decide_plan(PLAN, circumstances(POLICY, [no, BY_ALICE, BY_BOB])).value == PLAN


def test_the_requester_does_not_count_when_excluded_but_can_reject() -> None:
    policy = make_policy(plan=2, exclude_requester=True)
    plan = make_plan(policy)
    terms = plan_terms(plan)
    own, bob = sign(terms, ALICE, "alice@example.org"), sign(terms, BOB, "bob")
    with pytest.raises(ApprovalMissingError, match=r"1 of 2: bob; .* alice \(asked for the run\)"):
        decide_plan(plan, circumstances(policy, [own, bob]))
    both = [bob, sign(terms, CAROL, "carol")]
    assert decide_plan(plan, circumstances(policy, both)).value == plan
    no = sign(terms, ALICE, "alice", decision="reject")
    with pytest.raises(ApprovalRejectedError, match="by alice"):
        decide_plan(plan, circumstances(policy, [*both, no]))


def test_another_project_is_refused() -> None:
    with pytest.raises(ApprovalInvalidError, match=f"expected project {PROJECT}, got p-2"):
        decide_plan(PLAN, circumstances(POLICY, [BY_ALICE, BY_BOB], project="p-2"))


def test_an_edited_policy_or_reviewers_file_is_refused() -> None:
    lax = make_policy(plan=1, diff=2)
    with pytest.raises(ApprovalInvalidError, match=r"^policy: expected"):
        decide_plan(PLAN, circumstances(lax, [BY_ALICE]))
    edited = REVIEWERS + b"#\n"
    with pytest.raises(ApprovalInvalidError, match=r"^reviewers file: expected"):
        decide_plan(PLAN, circumstances(POLICY, [BY_ALICE, BY_BOB], reviewers=edited))
    crossed = replace(PLAN, reviewers=make_policy(reviewers=edited).reviewers_digest)
    with pytest.raises(ApprovalInvalidError, match=r"^reviewers file: expected"):
        decide_plan(crossed, circumstances(POLICY, [BY_ALICE, BY_BOB]))


def test_a_plan_past_its_end_is_refused_and_at_its_end_is_not() -> None:
    both = [BY_ALICE, BY_BOB]
    assert decide_plan(PLAN, circumstances(POLICY, both, now=LATER)).value == PLAN
    with pytest.raises(ApprovalExpiredError, match=f"expected use before {LATER}"):
        decide_plan(PLAN, circumstances(POLICY, both, now="2026-06-02T12:00:00.001Z"))


def test_an_approval_works_once() -> None:
    with pytest.raises(ApprovalConsumedError, match="spent already"):
        decide_plan(PLAN, circumstances(POLICY, [BY_ALICE, BY_BOB], spent=True))


def test_a_throwaway_policy_is_refused_outside_the_demonstration() -> None:
    policy = make_policy(throwaway=True)
    plan = make_plan(policy)
    approvals = [sign(plan_terms(plan), ALICE, "alice")]
    with pytest.raises(AuthorityError, match="demonstration's throw-away key"):
        decide_plan(plan, circumstances(policy, approvals))
    approved = decide_plan(plan, circumstances(policy, approvals, demo_project=True))
    assert approved.value == plan


def test_a_policy_that_can_not_be_met_is_the_authors_mistake() -> None:
    policy = make_policy(plan=4)
    with pytest.raises(InputError, match="cannot be met"):
        decide_plan(make_plan(policy), circumstances(policy))


CHANGESET = make_changeset(b"src/a.py", b"docs/b.md")
DIFF = diff_terms(CHANGESET, PLAN, DIFF_NONCE)
DIFF_BOTH = [sign(DIFF, ALICE, "alice"), sign(DIFF, BOB, "bob")]


def test_a_diff_lands_after_its_plan_has_ended() -> None:
    late = "2026-07-01T00:00:00.000Z"
    both = [
        sign(DIFF, who, name, received=late, not_after="2026-07-02T00:00:00.000Z")
        for name, who in (("alice", ALICE), ("bob", BOB))
    ]
    given_ = circumstances(POLICY, both, now=late)
    assert decide_diff(CHANGESET, given_, plan=PLAN, nonce=DIFF_NONCE).value == CHANGESET


def test_approvals_of_a_diff_are_for_this_diff_plan_and_nonce_only() -> None:
    given_ = circumstances(POLICY, DIFF_BOTH)
    assert decide_diff(CHANGESET, given_, plan=PLAN, nonce=DIFF_NONCE).value == CHANGESET
    grown = make_changeset(b"src/a.py", b"docs/b.md", b"evil")
    for changeset, plan, nonce in (
        (grown, PLAN, DIFF_NONCE),
        (CHANGESET, make_plan(POLICY, run="run-2"), DIFF_NONCE),
        (CHANGESET, PLAN, "e" * 32),
        (CHANGESET.reversed(), PLAN, DIFF_NONCE),
    ):
        with pytest.raises(ApprovalMissingError, match="0 of 2; missing 2; not counted: one"):
            decide_diff(changeset, given_, plan=plan, nonce=nonce)


def test_approvals_of_a_plan_are_not_approvals_of_a_diff() -> None:
    given_ = circumstances(POLICY, [BY_ALICE, BY_BOB])
    with pytest.raises(ApprovalMissingError, match="expected namespace diff-approval@harness"):
        decide_diff(CHANGESET, given_, plan=PLAN, nonce=DIFF_NONCE)
    with pytest.raises(ApprovalMissingError, match="expected namespace plan-approval@harness"):
        decide_plan(PLAN, circumstances(POLICY, DIFF_BOTH))


def test_a_rule_raises_the_number_and_names_its_persons() -> None:
    policy = make_policy(
        diff=1, rules=(PathRule(paths=("docs/",), approvals=2, reviewers=("bob", "carol")),)
    )
    plan = make_plan(policy)
    terms = diff_terms(CHANGESET, plan, DIFF_NONCE)
    alice, bob, carol = (sign(terms, key, name) for name, key in SIGNED_BY.items())
    with pytest.raises(
        ApprovalMissingError, match=r"rule 1 \(docs/\): 1 of 2: bob; missing 1$"
    ) as caught:
        decide_diff(CHANGESET, circumstances(policy, [alice, bob]), plan=plan, nonce=DIFF_NONCE)
    assert len(caught.value.issues) == 1
    given_ = circumstances(policy, [bob, carol])
    assert decide_diff(CHANGESET, given_, plan=plan, nonce=DIFF_NONCE).value == CHANGESET
    elsewhere = make_changeset(b"src/a.py")
    only = circumstances(policy, [sign(diff_terms(elsewhere, plan, DIFF_NONCE), ALICE, "alice")])
    assert decide_diff(elsewhere, only, plan=plan, nonce=DIFF_NONCE).value == elsewhere


def test_diff_gate_refusals_are_those_of_the_plan_gate() -> None:
    for given_, error in (
        (circumstances(POLICY, DIFF_BOTH, spent=True), ApprovalConsumedError),
        (circumstances(POLICY, DIFF_BOTH, project="p-2"), ApprovalInvalidError),
        (circumstances(make_policy(), DIFF_BOTH), ApprovalInvalidError),
        (
            circumstances(POLICY, [*DIFF_BOTH, sign(DIFF, CAROL, "carol", decision="reject")]),
            ApprovalRejectedError,
        ),
    ):
        with pytest.raises(error):
            decide_diff(CHANGESET, given_, plan=PLAN, nonce=DIFF_NONCE)


SIGNERS: dict[str, tuple[FakeSigner, str]] = {
    "alice": (ALICE, "alice"),
    "alice again": (ALICE, "alice"),
    "alice's other key": (ALICE_TWO, "alice"),
    "alice's other name": (ALICE_TWO, "alice@example.org"),
    "bob": (BOB, "bob"),
    "carol": (CAROL, "carol"),
}
INVALID: dict[str, Callable[[Terms], ReceivedApproval]] = {
    "stranger": lambda terms: sign(terms, STRANGER, "bob"),
    "bob as carol": lambda terms: sign(terms, BOB, "carol"),
    "other plan": lambda terms: sign(replace(terms, plan=DIFF.subject), CAROL, "carol"),
    "other project": lambda terms: sign(replace(terms, project="p-2"), CAROL, "carol"),
    "other policy": lambda terms: sign(replace(terms, policy=DIFF.subject), CAROL, "carol"),
    "other nonce": lambda terms: sign(replace(terms, nonce="f" * 32), CAROL, "carol"),
    "other gate": lambda terms: sign(replace(terms, gate="diff"), CAROL, "carol"),
    "junk": lambda _: ReceivedApproval(statement=b"", signature=b"", received=NOW),
}


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(SIGNERS)), max_size=6),
    invalid=st.lists(st.sampled_from(sorted(INVALID)), max_size=3),
    k=st.integers(1, 3),
    data=st.data(),
)
def test_a_threshold_is_met_by_that_many_distinct_persons_and_by_nothing_else(
    names: list[str], invalid: list[str], k: int, data: st.DataObject
) -> None:
    policy = make_policy(plan=k)
    plan = make_plan(policy)
    terms = plan_terms(plan)
    approvals = [sign(terms, *SIGNERS[name]) for name in names]
    approvals += [INVALID[name](terms) for name in invalid]
    persons = {SIGNERS[name][1].partition("@")[0] for name in names}

    def outcome(order: Sequence[ReceivedApproval]) -> tuple[bytes, ...] | str:
        try:
            approved = decide_plan(plan, circumstances(policy, order))
        except ApprovalMissingError as error:
            return error.message
        return tuple(item.signature for item in approved.approvals)

    found = outcome(approvals)
    assert outcome(data.draw(st.permutations(approvals))) == found, "order does not matter"
    if len(persons) >= k:
        assert len(found) == len(persons)
        assert not isinstance(found, str)
    else:
        assert isinstance(found, str)
        assert f"plan approvals: {len(persons)} of {k}" in found
