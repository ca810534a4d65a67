from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import InputError
from harness.model.canonical import canonical_bytes
from harness.model.digest import digest_of
from harness.model.plan import (
    MAX_OPERATIONS,
    PLAN_KIND_V1,
    DisclosedOperation,
    Disclosure,
    Plan,
    PlannedOperation,
    check_operations,
    parse_plan,
)

SEAL = digest_of(b"seal")
TOLD = DisclosedOperation(
    alternative=("make",),
    expected_ms=5,
    expected_from=1,
    files=2,
    bytes=3,
    left_out=(("a.pem", "looks like a secret"),),
)
PLAN = Plan(
    project="p",
    project_name="sample",
    run="r",
    requester="ada",
    created="2026-01-31T12:00:00.000Z",
    not_after="2026-02-01T12:00:00.000Z",
    nonce="a" * 32,
    operations=(
        PlannedOperation(name="build", seal=SEAL),
        PlannedOperation(name="test:py=3.11", seal=SEAL, needs=("build",)),
    ),
    policy_name="default",
    policy=SEAL,
    reviewers=SEAL,
    disclosure=Disclosure(why="to see", operations=(TOLD, TOLD)),
)
FIRST_VERSION: dict[str, Any] = {
    "_type": PLAN_KIND_V1,
    "project": "p",
    "projectName": "sample",
    "run": "r",
    "requester": "ada",
    "created": "2026-01-31T12:00:00.000Z",
    "notAfter": "2026-02-01T12:00:00.000Z",
    "nonce": "a" * 32,
    "seals": [SEAL],
    "policyName": "default",
    "policy": SEAL,
    "reviewers": SEAL,
    "disclosure": {"why": "to see", **TOLD.to_json()},
}


def test_a_plan_comes_back_as_it_was_written() -> None:
    assert parse_plan(PLAN.to_bytes()) == PLAN


def test_a_plan_of_the_first_version_keeps_its_hash() -> None:
    data = canonical_bytes(FIRST_VERSION)
    plan = parse_plan(data)
    assert plan.digest == digest_of(data)
    assert plan.operations == (PlannedOperation(name="", seal=SEAL),)
    assert plan.disclosure == Disclosure(why="to see", operations=(TOLD,))


@pytest.mark.parametrize(
    "change",
    [
        {"seals": [SEAL, SEAL]},
        {"seals": []},
        {"operations": []},
        {"extra": 1},
        {"policy": "sha256:x"},
        {"disclosure": {"why": "x"}},
    ],
)
def test_a_malformed_plan_of_the_first_version_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"plan: |digest: "):
        parse_plan(canonical_bytes({**FIRST_VERSION, **change}))


@pytest.mark.parametrize("member", sorted(json.loads(PLAN.to_bytes()).keys() - {"_type"}))
def test_a_plan_without_a_member_is_refused(member: str) -> None:
    value = json.loads(PLAN.to_bytes())
    del value[member]
    with pytest.raises(InputError, match="plan: malformed"):
        parse_plan(canonical_bytes(value))


def operation(name: str, *needs: str) -> PlannedOperation:
    return PlannedOperation(name=name, seal=SEAL, needs=needs)


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        ((), "expected 1 to 128 operations, got 0"),
        (tuple(operation(f"o{n}") for n in range(MAX_OPERATIONS + 1)), "got 129"),
        ((operation("a"), operation("a")), "the operation 'a' is here twice"),
        ((operation("a", "a"),), "'a' needs 'a', which does not run before"),
        ((operation("a", "b"), operation("b")), "'a' needs 'b', which does not run before"),
    ],
)
def test_operations_that_do_not_fit_together_are_refused(
    operations: tuple[PlannedOperation, ...], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        check_operations(operations)
    if operations:
        with pytest.raises(InputError, match=says):
            parse_plan(replace(PLAN, operations=operations).to_bytes())
