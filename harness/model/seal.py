"""A seal: the hash of what would be executed. A plan: seals, disclosure and who must approve.

The seal holds recipe, parameters, snapshot, image id and isolation, and nothing of the host, the
user or the time: the same inputs give the same seal on any machine. The plan adds what makes one
run one run: project, run id, requester, nonce, expiry, approval policy and reviewers' digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.image import Image, parse_image

SEAL_KIND = "harness/seal/v1"
PLAN_KIND = "harness/plan/v1"

FIXED_ENV: Mapping[str, str] = {
    "HOME": "/home/worker",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LOGNAME": "worker",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONHASHSEED": "0",
    "SHELL": "/bin/sh",
    "SOURCE_DATE_EPOCH": "315532800",
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108 - inside the worker, a private sized tmpfs
    "TZ": "UTC",
    "USER": "worker",
}
"""What every step sees; a recipe may set others and override none of these. Part of the seal."""

WORKSPACE = "/workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What would be executed.

    Attributes:
        recipe: `Recipe.to_json()`.
        snapshot: digest of the project's root folder object.
        image: name, content id, platform.
        isolation: `Isolation.to_json()` with the recipe's effective limits.
        env: the whole environment of a step.
    """

    recipe: Mapping[str, Any]
    snapshot: Digest
    image: Image
    isolation: Mapping[str, Any]
    env: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the seal."""
        return canonical_bytes(
            {
                "_type": SEAL_KIND,
                "recipe": dict(self.recipe),
                "snapshot": self.snapshot,
                "image": self.image.to_json(),
                "isolation": dict(self.isolation),
                "env": dict(self.env),
                "workspace": WORKSPACE,
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the seal."""
        return digest_of(self.to_bytes())


def parse_seal(data: bytes) -> Seal:
    """Read a seal.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, SEAL_KIND)
    try:
        seal = Seal(
            recipe=value["recipe"],
            snapshot=parse_digest(value["snapshot"]),
            image=parse_image(value["image"]),
            isolation=value["isolation"],
            env=value["env"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"seal: malformed: {error}") from error
    if seal.to_bytes() != data:
        raise InputError("seal: has unknown or missing members")
    return seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a person approves; its digest is the plan hash.

    Attributes:
        project: the project's id.
        project_name: its name, for people.
        run: the run id this plan is for.
        requester: who asked.
        created: RFC 3339 time.
        not_after: RFC 3339 time after which it can't be approved or run.
        nonce: 128 random bits as 32 hex digits; spent by the ledger entry of the run.
        seal: digest of what would be executed.
        policy_name: name of the policy file.
        policy: digest of the approval policy.
        reviewers: digest of the reviewers file.
        disclosure: what the approver is shown: why, the direct alternative, expected time,
            files left out.
    """

    project: str
    project_name: str
    run: str
    requester: str
    created: str
    not_after: str
    nonce: str
    seal: Digest
    policy_name: str
    policy: Digest
    reviewers: Digest
    disclosure: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the plan hash."""
        return canonical_bytes(
            {
                "_type": PLAN_KIND,
                "project": self.project,
                "projectName": self.project_name,
                "run": self.run,
                "requester": self.requester,
                "created": self.created,
                "notAfter": self.not_after,
                "nonce": self.nonce,
                "seals": [self.seal],
                "policyName": self.policy_name,
                "policy": self.policy,
                "reviewers": self.reviewers,
                "disclosure": dict(self.disclosure),
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the plan hash."""
        return digest_of(self.to_bytes())


def parse_plan(data: bytes) -> Plan:
    """Read a plan.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, PLAN_KIND)
    try:
        (seal,) = value["seals"]
        plan = Plan(
            project=value["project"],
            project_name=value["projectName"],
            run=value["run"],
            requester=value["requester"],
            created=value["created"],
            not_after=value["notAfter"],
            nonce=value["nonce"],
            seal=parse_digest(seal),
            policy_name=value["policyName"],
            policy=parse_digest(value["policy"]),
            reviewers=parse_digest(value["reviewers"]),
            disclosure=value["disclosure"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"plan: malformed: {error}") from error
    if plan.to_bytes() != data:
        raise InputError("plan: has unknown or missing members")
    return plan
