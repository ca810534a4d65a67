"""What the ledger's entries say of approvals and nonces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import (
    ApprovalConsumedError,
    ApprovalRejectedError,
    InputError,
    VerificationError,
)
from harness.governance.approvals import diff_terms, plan_terms, verify_approval
from harness.governance.grants import (
    collect_approvals,
    decision_body,
    guard_grant,
    is_spent,
    refuse_spent,
)
from harness.governance.reviewers import parse_reviewers
from harness.model.digest import Digest, digest_of
from harness.model.entry import Entry, EntryVerb, Phase
from tests.fakes.approval_case import (
    ALICE,
    CAROL,
    DIFF_NONCE,
    NOW,
    REVIEWERS,
    make_changeset,
    make_plan,
    make_policy,
    sign,
)

POLICY = make_policy()
PLAN = make_plan(POLICY)
TERMS = plan_terms(PLAN)
DIFF = diff_terms(make_changeset(b"a"), PLAN, DIFF_NONCE)
BLOBS: dict[Digest, bytes] = {}


def entry(verb: EntryVerb, phase: Phase, body: dict[str, str], time: str = NOW) -> Entry:
    return Entry(
        seq=0,
        time=time,
        prev=digest_of(b""),
        verb=verb,
        phase=phase,
        project="p-1",
        body=body,
        notes={},
    )


def load(digest: Digest) -> bytes:
    if digest not in BLOBS:
        raise VerificationError(f"blob {digest}: is not in the store")
    return BLOBS[digest]


def decided(verb: EntryVerb, body: dict[str, str], time: str = NOW) -> Entry:
    return entry(verb, "done", body, time)


def test_a_decision_goes_through_the_ledger_and_comes_back_whole() -> None:
    received = sign(TERMS, CAROL, "carol")
    verified = verify_approval(
        received, terms=TERMS, policy=POLICY, reviewers=parse_reviewers(REVIEWERS)
    )
    body = decision_body(verified)
    assert body["reviewer"] == "carol"
    assert body["presence"] == "flag-set-attestation-not-checked"
    assert body["key"].startswith("SHA256:")
    BLOBS.update({digest_of(data): data for data in (received.statement, received.signature)})
    other = body | {"plan": digest_of(b"other plan")}
    entries = [
        entry("seal", "done", {"nonce": TERMS.nonce}),
        decided("approve", other),
        decided("approve", body),
        entry("run", "intent", {"plan": TERMS.plan}),
    ]
    assert collect_approvals(entries, TERMS, load) == (received,)
    assert collect_approvals(entries, DIFF, load) == ()


def test_the_time_of_receipt_is_that_of_the_entry() -> None:
    received = sign(TERMS, ALICE, "alice")
    BLOBS.update({digest_of(data): data for data in (received.statement, received.signature)})
    body = {
        "gate": "plan",
        "subject": TERMS.subject,
        "plan": TERMS.plan,
        "statement": digest_of(received.statement),
        "signature": digest_of(received.signature),
    }
    later = "2026-06-01T18:00:00.000Z"
    (found,) = collect_approvals([decided("reject", body, later)], TERMS, load)
    assert found.received == later


def test_missing_bytes_stop_everything_for_they_could_be_a_rejection() -> None:
    body = {
        "gate": "plan",
        "subject": TERMS.subject,
        "plan": TERMS.plan,
        "statement": digest_of(b"lost"),
        "signature": digest_of(b"lost too"),
    }
    with pytest.raises(VerificationError, match="is not in the store"):
        collect_approvals([decided("reject", body)], TERMS, load)
    with pytest.raises(InputError, match="expected sha256:"):
        collect_approvals([decided("reject", body | {"statement": "x"})], TERMS, load)


def test_a_decision_from_before_a_restore_is_stale_also_when_it_is_brought_again() -> None:
    old, new = sign(TERMS, ALICE, "alice"), sign(TERMS, CAROL, "carol")
    for received in (old, new):
        BLOBS.update({digest_of(data): data for data in (received.statement, received.signature)})
    about = {"gate": "plan", "subject": TERMS.subject, "plan": TERMS.plan}
    first, second = (
        decided(
            "approve",
            about
            | {
                "statement": digest_of(item.statement),
                "signature": digest_of(item.signature),
            },
        )
        for item in (old, new)
    )
    told = [first, entry("restore", "done", {}), first, second]
    numbered = [replace(item, seq=number) for number, item in enumerate(told)]
    found = collect_approvals(numbered, TERMS, load)
    assert [(item.statement, item.stale) for item in found] == [
        (old.statement, True),
        (old.statement, True),
        (new.statement, False),
    ]
    assert not any(item.stale for item in collect_approvals(numbered[2:], TERMS, load))


def test_a_nonce_is_spent_by_the_intent_of_a_run_or_an_apply_only() -> None:
    nonce = {"nonce": TERMS.nonce}
    idle = [
        entry("seal", "done", nonce),
        entry("quarantine", "done", nonce),
        entry("undo", "done", nonce),
        entry("approve", "done", nonce),
        entry("run", "intent", {"nonce": "f" * 32}),
    ]
    assert not is_spent(idle, TERMS.nonce)
    refuse_spent(TERMS.nonce)(idle)
    for verb in ("run", "apply"):
        spent = [*idle, entry(verb, "intent", nonce)]
        assert is_spent(spent, TERMS.nonce)
        with pytest.raises(ApprovalConsumedError, match=TERMS.nonce):
            refuse_spent(TERMS.nonce)(spent)


def test_a_grant_is_not_claimed_over_a_rejection_that_came_meanwhile() -> None:
    about = {"gate": "plan", "subject": TERMS.subject, "plan": TERMS.plan, "reviewer": "bob"}
    before = [entry("seal", "done", {"nonce": TERMS.nonce})]
    guard = guard_grant(TERMS, seen=len(before))
    guard(before)
    guard([*before, decided("approve", about), decided("reject", about | {"gate": "diff"})])
    with pytest.raises(ApprovalRejectedError, match="was rejected by bob just now"):
        guard([*before, decided("reject", about)])
    with pytest.raises(ApprovalConsumedError):
        guard([*before, entry("run", "intent", {"nonce": TERMS.nonce})])
