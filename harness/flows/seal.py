"""Seal: freeze recipes, files, images and isolation into seals, and make one plan of them.

Nothing of the plan is kept but canonical bytes by digest; the ledger entry makes it findable.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import InputError
from harness.execution.image.lock import resolve_image
from harness.execution.snapshot.take import Snapshot, take_snapshot
from harness.flows.history import expect_duration
from harness.flows.planned import PlannedRecipe, read_recipes_to_plan
from harness.flows.session import Session, read_clock
from harness.flows.worker_identity import worker_owner
from harness.governance.approvals import open_reviewers
from harness.governance.thresholds import check_policy
from harness.model.clock import add_ms, format_time
from harness.model.plan import (
    DisclosedOperation,
    Disclosure,
    Plan,
    PlannedOperation,
    check_operations,
)
from harness.model.policy import Policy
from harness.model.recipe import Recipe
from harness.model.relpath import show
from harness.model.seal import FIXED_ENV, Seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A plan just made, with what it was made of.

    Attributes:
        plan: the plan.
        seals: what it executes, in order.
        snapshots: the frozen files of each, and what was left out.
    """

    plan: Plan
    seals: tuple[Seal, ...]
    snapshots: tuple[Snapshot, ...]


def seal_recipes(
    session: Session, names: Sequence[str], *, chosen: Mapping[str, str], why: str, requester: str
) -> Sealed:
    """Seal recipes, with all that they need, on the project as it is now.

    Args:
        session: host and project.
        names: the recipes' names, in the order in which they should run.
        chosen: parameter values; each goes to every recipe that declares it.
        why: shown to the approver; the first recipe's description when empty.
        requester: who asks.

    Raises:
        InputError: every mistake in the recipes, their policy, or the files that would enter.
        ImageMissingError: an image was never built here.
        StateError: the state folder can't hold the snapshot.
    """
    recipes = read_recipes_to_plan(session, names, chosen)
    policy = _one_policy(recipes)
    reviewers = open_reviewers(policy.approval, policy.reviewers)
    check_policy(policy.approval, reviewers, requester=requester)
    snapshots = _take_snapshots(session, recipes, policy)
    seals = tuple(
        _seal(session, planned.recipe, policy, snapshot)
        for planned, snapshot in zip(recipes, snapshots, strict=True)
    )
    operations = tuple(
        PlannedOperation(name=planned.recipe.operation, seal=seal.digest, needs=planned.needs)
        for planned, seal in zip(recipes, seals, strict=True)
    )
    check_operations(operations)
    moment = read_clock()
    created = format_time(moment)
    plan = Plan(
        project=session.project.id,
        project_name=session.project.name,
        run=f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        requester=requester,
        created=created,
        not_after=add_ms(created, policy.approval.valid_ms),
        nonce=secrets.token_hex(16),
        operations=operations,
        policy_name=policy.name,
        policy=policy.approval.digest,
        reviewers=policy.approval.reviewers_digest,
        disclosure=_disclose(session, recipes, snapshots, why or _describe(recipes, names[0])),
    )
    _record(session, plan, seals, policy)
    return Sealed(plan=plan, seals=seals, snapshots=snapshots)


def _one_policy(recipes: Sequence[PlannedRecipe]) -> Policy:
    """Return the policy that all recipes of a plan are under."""
    first = recipes[0]
    other = next((item for item in recipes if item.policy.name != first.policy.name), None)
    if other is not None:
        raise InputError(
            f"plan: expected recipes under one policy, got {first.recipe.name} under "
            f"{first.policy.name} and {other.recipe.name} under {other.policy.name}",
            hint="one hash is approved under one set of rules: seal them apart",
        )
    return first.policy


def _take_snapshots(
    session: Session, recipes: Sequence[PlannedRecipe], policy: Policy
) -> tuple[Snapshot, ...]:
    """Freeze the files of every recipe; those with the same inputs share one snapshot."""
    taken: dict[tuple[tuple[str, ...], tuple[str, ...]], Snapshot] = {}
    for recipe in (planned.recipe for planned in recipes):
        inputs = (recipe.include, recipe.exclude)
        if inputs not in taken:
            taken[inputs] = take_snapshot(
                session.project.root,
                state=session.state,
                project=session.project.id,
                include=recipe.include,
                exclude=recipe.exclude,
                admit_secrets=policy.isolation.admit_secrets,
                owner=worker_owner(),
            )
    return tuple(taken[planned.recipe.include, planned.recipe.exclude] for planned in recipes)


def _seal(session: Session, recipe: Recipe, policy: Policy, snapshot: Snapshot) -> Seal:
    return Seal(
        recipe=recipe.to_json(),
        snapshot=snapshot.digest,
        image=resolve_image(session.state.images_lock, recipe.image),
        isolation={**policy.isolation.to_json(), "limits": recipe.limits.to_json()},
        env={**recipe.env, **FIXED_ENV},
    )


def _record(session: Session, plan: Plan, seals: Sequence[Seal], policy: Policy) -> None:
    """Keep every byte that the plan's digests name, then put the plan on the ledger."""
    sealed = (seal.to_bytes() for seal in seals)
    for data in (*sealed, policy.approval.to_bytes(), policy.reviewers, plan.to_bytes()):
        session.blobs.put(data)
    session.ledger.append(
        "seal",
        "done",
        project=session.project.id,
        body={
            "plan": plan.digest,
            "run": plan.run,
            "nonce": plan.nonce,
            "operations": [
                {"name": planned.name, "seal": planned.seal, "snapshot": seal.snapshot}
                for planned, seal in zip(plan.operations, seals, strict=True)
            ],
        },
    )


def _describe(recipes: Sequence[PlannedRecipe], name: str) -> str:
    return next(item.recipe.description for item in recipes if item.recipe.name == name)


def _disclose(
    session: Session, recipes: Sequence[PlannedRecipe], snapshots: Sequence[Snapshot], why: str
) -> Disclosure:
    """Return what the approver is told beside the seals themselves."""
    entries = session.ledger.entries()
    told = []
    for planned, snapshot in zip(recipes, snapshots, strict=True):
        recipe = planned.recipe
        expected, runs = expect_duration(entries, session.project.id, recipe.operation)
        told.append(
            DisclosedOperation(
                alternative=tuple(shlex.join(step.argv) for step in recipe.steps),
                expected_ms=expected,
                expected_from=runs,
                files=snapshot.files,
                bytes=snapshot.bytes,
                left_out=tuple((show(item.path), item.reason) for item in snapshot.left_out),
            )
        )
    return Disclosure(why=why, operations=tuple(told))
