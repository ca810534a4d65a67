"""Seal: freeze recipe, files, image and isolation into one seal, and make a plan of it.

Nothing of the plan is kept but canonical bytes by digest; the ledger entry makes it findable.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.execution.image.lock import resolve_image
from harness.execution.snapshot.take import Snapshot, take_snapshot
from harness.flows.history import expect_duration
from harness.flows.recipes import read_recipe_named
from harness.flows.session import Session, read_clock
from harness.flows.worker_identity import worker_owner
from harness.governance.approvals import open_reviewers
from harness.governance.thresholds import check_policy
from harness.model.clock import add_ms, format_time
from harness.model.policy import Policy
from harness.model.recipe import Recipe
from harness.model.relpath import show
from harness.model.seal import FIXED_ENV, Plan, Seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A plan just made, with what it was made of.

    Attributes:
        plan: the plan.
        seal: what it executes.
        snapshot: the frozen files, and what was left out.
        recipe: as read.
        policy: as read.
    """

    plan: Plan
    seal: Seal
    snapshot: Snapshot
    recipe: Recipe
    policy: Policy


def seal_recipe(
    session: Session, name: str, *, chosen: Mapping[str, str], why: str, requester: str
) -> Sealed:
    """Seal a recipe on the project as it is now.

    Args:
        session: host and project.
        name: the recipe's name.
        chosen: parameter values.
        why: shown to the approver; the recipe's description when empty.
        requester: who asks.

    Raises:
        InputError: every mistake in the recipe, its policy, or the files that would enter.
        ImageMissingError: its image was never built here.
        StateError: the state folder can't hold the snapshot.
    """
    recipe, policy = read_recipe_named(session, name, chosen)
    reviewers = open_reviewers(policy.approval, policy.reviewers)
    check_policy(policy.approval, reviewers, requester=requester)
    image = resolve_image(session.state.images_lock, recipe.image)
    snapshot = take_snapshot(
        session.project.root,
        state=session.state,
        project=session.project.id,
        include=recipe.include,
        exclude=recipe.exclude,
        admit_secrets=policy.isolation.admit_secrets,
        owner=worker_owner(),
    )
    seal = Seal(
        recipe=recipe.to_json(),
        snapshot=snapshot.digest,
        image=image,
        isolation={**policy.isolation.to_json(), "limits": recipe.limits.to_json()},
        env={**recipe.env, **FIXED_ENV},
    )
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
        seal=seal.digest,
        policy_name=recipe.policy,
        policy=policy.approval.digest,
        reviewers=policy.approval.reviewers_digest,
        disclosure=_disclose(session, recipe, snapshot, why),
    )
    _record(session, plan, seal, policy, recipe)
    return Sealed(plan=plan, seal=seal, snapshot=snapshot, recipe=recipe, policy=policy)


def _record(session: Session, plan: Plan, seal: Seal, policy: Policy, recipe: Recipe) -> None:
    """Keep every byte that the plan's digests name, then put the plan on the ledger."""
    for data in (seal.to_bytes(), policy.approval.to_bytes(), policy.reviewers, plan.to_bytes()):
        session.blobs.put(data)
    session.ledger.append(
        "seal",
        "done",
        project=session.project.id,
        body={
            "plan": plan.digest,
            "seal": seal.digest,
            "run": plan.run,
            "nonce": plan.nonce,
            "snapshot": seal.snapshot,
            "recipe": recipe.name,
        },
    )


def _disclose(session: Session, recipe: Recipe, snapshot: Snapshot, why: str) -> dict[str, Any]:
    """Return what the approver is told beside the seal itself."""
    expected, runs = expect_duration(session.ledger.entries(), session.project.id, recipe.name)
    return {
        "why": why or recipe.description,
        "alternative": [shlex.join(step.argv) for step in recipe.steps],
        "expectedMs": expected,
        "expectedFromRuns": runs,
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "leftOut": [{"path": show(item.path), "reason": item.reason} for item in snapshot.left_out],
    }
