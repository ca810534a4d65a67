"""One approval: every obligation of `verify_approval` broken alone, each with its message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import ApprovalExpiredError, ApprovalInvalidError
from harness.governance.approvals import (
    MAX_STATEMENT,
    ReceivedApproval,
    Terms,
    VerifiedApproval,
    diff_terms,
    good_until,
    open_reviewers,
    plan_terms,
    verify_approval,
)
from harness.governance.reviewers import parse_reviewers
from harness.model.canonical import canonical_bytes, parse_json
from harness.model.digest import digest_of
from harness.model.policy import ApprovalPolicy
from tests.fakes.approval_case import (
    ALICE,
    ALICE_TWO,
    BOB,
    CAROL,
    DIFF_NONCE,
    LATER,
    NOW,
    REVIEWERS,
    STRANGER,
    make_changeset,
    make_plan,
    make_policy,
    sign,
)

POLICY = make_policy()
PLAN = make_plan(POLICY)
TERMS = plan_terms(PLAN)


def verify(
    received: ReceivedApproval, *, terms: Terms = TERMS, policy: ApprovalPolicy = POLICY
) -> VerifiedApproval:
    return verify_approval(
        received, terms=terms, policy=policy, reviewers=parse_reviewers(REVIEWERS)
    )


def test_an_approval_holds_and_says_who_decided_with_which_key() -> None:
    received = sign(TERMS, ALICE_TWO, "alice@example.org")
    verified = verify(received)
    assert (verified.person, verified.presence) == ("alice", "software-key")
    assert verified.key.blob == ALICE_TWO.blob
    assert verified.signed.statement == received.statement
    assert verified.signed.approval.decision == "approve"


def test_a_fido_key_is_recorded_as_flag_set_and_attestation_not_checked() -> None:
    assert verify(sign(TERMS, CAROL, "carol")).presence == "flag-set-attestation-not-checked"


CHANGESET = make_changeset(b"a.py")
ELSEWHERE = {
    "gate": diff_terms(CHANGESET, PLAN, DIFF_NONCE),
    "subject": replace(TERMS, subject=digest_of(b"other")),
    "project": replace(TERMS, project="p-2"),
    "plan": replace(TERMS, plan=digest_of(b"other")),
    "nonce": replace(TERMS, nonce="b" * 32),
}


@pytest.mark.parametrize("member", ["subject", "project", "plan", "nonce"])
def test_an_approval_of_something_else_is_refused_by_the_member_that_differs(member: str) -> None:
    with pytest.raises(ApprovalInvalidError, match=f"statement: expected {member} "):
        verify(sign(ELSEWHERE[member], ALICE, "alice"))


def test_an_approval_for_the_other_gate_is_refused_by_its_namespace() -> None:
    with pytest.raises(ApprovalInvalidError, match="expected namespace plan-approval@harness"):
        verify(sign(ELSEWHERE["gate"], ALICE, "alice"))


def test_a_statement_of_the_other_gate_is_refused_even_in_this_namespace() -> None:
    bent = replace(TERMS, gate="diff")
    received = sign(bent, ALICE, "alice", namespace="plan-approval@harness")
    with pytest.raises(ApprovalInvalidError, match="statement: expected gate plan, got 'diff'"):
        verify(received)


def test_an_approval_under_another_policy_is_refused() -> None:
    other = replace(TERMS, policy=digest_of(b"other policy"))
    with pytest.raises(ApprovalInvalidError, match="statement: expected policy"):
        verify(sign(other, ALICE, "alice"))


def test_an_edited_policy_is_refused_before_anything_is_read() -> None:
    edited = make_policy(valid_ms=1)
    with pytest.raises(ApprovalInvalidError, match=r"^policy: expected .*, got ") as caught:
        verify(sign(TERMS, ALICE, "alice"), policy=edited)
    assert "seal again" in caught.value.hint


def test_an_edited_reviewers_file_is_refused() -> None:
    with pytest.raises(ApprovalInvalidError, match=r"^reviewers file: expected .*, got "):
        open_reviewers(POLICY, REVIEWERS + b"# edited\n")


def test_a_key_that_is_not_enrolled_is_refused_by_its_fingerprint() -> None:
    with pytest.raises(ApprovalInvalidError, match=r"key SHA256:\S+ is not in the reviewers file"):
        verify(sign(TERMS, STRANGER, "alice"))


def test_one_person_can_not_sign_as_another() -> None:
    with pytest.raises(ApprovalInvalidError, match=r"expected reviewer 'bob', .* got 'alice'"):
        verify(sign(TERMS, BOB, "alice"))


def test_a_changed_statement_does_not_hold() -> None:
    received = sign(TERMS, ALICE, "alice")
    changed = replace(received, statement=received.statement.replace(b'"approve"', b'"reject"'))
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify(changed)


def test_receipt_after_its_end_is_refused_and_at_its_end_is_not() -> None:
    at_end = sign(TERMS, ALICE, "alice", received=LATER, not_after=LATER)
    assert verify(at_end).person == "alice"
    after = replace(at_end, received=LATER.replace(".000Z", ".001Z"))
    with pytest.raises(ApprovalExpiredError, match=f"expected before {LATER}"):
        verify(after)


def test_a_plan_past_its_end_can_not_be_approved_and_a_diff_has_no_such_end() -> None:
    late = "2026-06-03T00:00:00.000Z"
    received = sign(TERMS, ALICE, "alice", received=late, not_after="2026-07-01T00:00:00.000Z")
    with pytest.raises(ApprovalExpiredError, match=f"expected before {PLAN.not_after}, got {late}"):
        verify(received)
    terms = diff_terms(CHANGESET, PLAN, DIFF_NONCE)
    received = sign(terms, ALICE, "alice", received=late, not_after="2026-07-01T00:00:00.000Z")
    assert verify(received, terms=terms).person == "alice"


def test_options_of_the_line_are_judged_at_receipt() -> None:
    text = (
        f'alice namespaces="diff-approval@harness" {ALICE.public_text}\n'
        f'bob valid-after="20260601120001Z" {BOB.public_text}\n'
        f'carol valid-before="20260601Z" {CAROL.public_text}\n'
    ).encode()
    people, policy = parse_reviewers(text), make_policy(reviewers=text)
    terms = plan_terms(make_plan(policy))
    for signer, name, message in (
        (ALICE, "alice", "key of alice may not sign for plan-approval@harness"),
        (BOB, "bob", f"key of bob does not count at {NOW}"),
        (CAROL, "carol", f"key of carol does not count at {NOW}"),
    ):
        with pytest.raises(ApprovalInvalidError, match=message):
            verify_approval(sign(terms, signer, name), terms=terms, policy=policy, reviewers=people)
    later = sign(terms, BOB, "bob", received="2026-06-01T12:00:01.000Z")
    verified = verify_approval(later, terms=terms, policy=policy, reviewers=people)
    assert verified.person == "bob"


def signed_by_alice(statement: bytes) -> ReceivedApproval:
    return ReceivedApproval(
        statement=statement,
        signature=ALICE.sign(statement, TERMS.namespace),
        received=NOW,
    )


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("reviewer", ["alice"]),
        ("comment", {"a": 1}),
        ("project", 7),
        ("notAfter", "tomorrow"),
        ("decision", "perhaps"),
        ("extra", "member"),
    ],
)
def test_a_malformed_statement_is_refused_although_the_signature_holds(
    member: str, value: object
) -> None:
    body = parse_json(sign(TERMS, ALICE, "alice").statement)
    body["predicate"][member] = value
    with pytest.raises(ApprovalInvalidError, match="statement: "):
        verify(signed_by_alice(canonical_bytes(body)))


def test_a_statement_in_another_spelling_or_too_long_is_refused() -> None:
    statement = sign(TERMS, ALICE, "alice").statement
    with pytest.raises(ApprovalInvalidError, match="not in canonical form"):
        verify(signed_by_alice(statement + b"\n"))
    with pytest.raises(ApprovalInvalidError, match=f"at most {MAX_STATEMENT} bytes"):
        verify(signed_by_alice(b" " * (MAX_STATEMENT + 1)))


def test_a_person_can_shorten_the_policy_term_never_lengthen_it() -> None:
    hour = make_policy(valid_ms=3_600_000)
    long = verify(sign(TERMS, ALICE, "alice", not_after="2099-01-01T00:00:00.000Z"))
    assert good_until(long.signed, hour) == "2026-06-01T13:00:00.000Z"
    brief = verify(sign(TERMS, ALICE, "alice", not_after="2026-06-01T12:10:00.000Z"))
    assert good_until(brief.signed, hour) == "2026-06-01T12:10:00.000Z"
