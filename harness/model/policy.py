"""A policy: what a worker gets (isolation, sealed) and who must sign what (approval, in the plan).

A rule of the approval part raises the threshold for parts of the tree, in the manner of
CODEOWNERS. A threshold is at least 1: a policy that asks for nobody is no policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of
from harness.model.limits import Isolation

APPROVAL_POLICY_KIND = "harness/approval-policy/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRule:
    """A higher threshold for the paths that match.

    Attributes:
        paths: gitignore-style patterns.
        approvals: how many distinct persons must approve a diff that touches one of them.
        reviewers: the persons who count for this rule; empty means all of the reviewers file.
    """

    paths: tuple[str, ...]
    approvals: int
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """Who must sign what.

    Attributes:
        plan_approvals: distinct persons who must approve a plan before it runs.
        diff_approvals: distinct persons who must approve a diff before it lands.
        rules: higher thresholds for parts of the tree, for diffs.
        exclude_requester: the person who asked for the run does not count.
        valid_ms: how long a plan and an approval stay good.
        reviewers_digest: digest of the bytes of the reviewers file (OpenSSH allowed_signers).
        throwaway: the policy is for a throw-away demonstration key; refused outside the demo.
    """

    plan_approvals: int = 1
    diff_approvals: int = 1
    rules: tuple[PathRule, ...] = ()
    exclude_requester: bool = False
    valid_ms: int = 24 * 3600 * 1000
    reviewers_digest: Digest
    throwaway: bool = False

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the policy digest of a plan."""
        body: dict[str, Any] = {
            "_type": APPROVAL_POLICY_KIND,
            "planApprovals": self.plan_approvals,
            "diffApprovals": self.diff_approvals,
            "rules": [
                {
                    "paths": list(rule.paths),
                    "approvals": rule.approvals,
                    "reviewers": list(rule.reviewers),
                }
                for rule in self.rules
            ],
            "excludeRequester": self.exclude_requester,
            "validMs": self.valid_ms,
            "reviewers": self.reviewers_digest,
            "throwaway": self.throwaway,
        }
        return canonical_bytes(body)

    @property
    def digest(self) -> Digest:
        """Return the policy digest."""
        return digest_of(self.to_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy file, read and checked.

    Attributes:
        name: the file's own name for itself.
        isolation: what a worker gets.
        approval: who must sign what.
        reviewers: the exact bytes of the reviewers file.
    """

    name: str
    isolation: Isolation
    approval: ApprovalPolicy
    reviewers: bytes
