"""The policy file: strict YAML in, a `Policy` out, or every mistake in it.

Rules, beside the shape (`harness.model.files.file_schemas.POLICY`):
    * A rule that changes nothing, or that nobody can satisfy, is refused: it would only look safe.
    * The reviewers file lies beside the policy file; its bytes are part of the policy.
    * Isolation can only tighten the host's policy, and every policy the built-in ceiling.
"""

from __future__ import annotations

from harness.errors import InputError
from harness.model.clock import parse_duration
from harness.model.digest import digest_of
from harness.model.files.fields import child, items, number, switch, text, texts
from harness.model.files.file_shape import check_name, check_shape
from harness.model.files.limits_file import read_limits
from harness.model.files.mistakes import Mistakes
from harness.model.files.policy_schema import HOST, POLICY
from harness.model.files.recipe_rules import pattern_problem
from harness.model.files.strict_yaml import Node, parse_yaml
from harness.model.limits import WIDEST, Isolation, stricter
from harness.model.policy import ApprovalPolicy, PathRule, Policy

MAX_VALID_MS = 30 * 24 * 3600 * 1000
"""Longest life of a plan and an approval: what was looked at a month ago is looked at again."""

_SUMMARY = "policy is not valid"
_DEFAULTS = ApprovalPolicy(reviewers_digest=digest_of(b""))


def reviewers_file_of(data: bytes, file: str) -> str:
    """Return the name of the reviewers file, which lies beside the policy file.

    Args:
        data: the policy file's bytes.
        file: its path, for messages.

    Raises:
        InputError: every mistake in the policy file.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), POLICY, mistakes)
    name = text(child(root, "approval", "reviewers"))
    if not name:
        mistakes.stop(_SUMMARY)
    return name


def read_host_isolation(data: bytes, file: str) -> Isolation:
    """Read the host's own policy: what any worker on this host gets at most.

    Args:
        data: the file's bytes.
        file: its path, for messages.

    Raises:
        InputError: every mistake in the file.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), HOST, mistakes)
    isolation = _read_isolation(child(root, "isolation"), WIDEST, WIDEST, mistakes)
    mistakes.stop_if_any("host policy is not valid")
    return isolation


def read_policy(
    data: bytes, file: str, *, name: str, reviewers: bytes, above: Isolation | None = None
) -> Policy:
    """Read a policy.

    Args:
        data: the policy file's bytes.
        file: its path, for messages.
        name: the policy's name: the file's stem.
        reviewers: the bytes of the file that `reviewers_file_of` names.
        above: what the host allows at most; None when it says nothing.

    Raises:
        InputError: every mistake in the file.
    """
    above = WIDEST if above is None else above
    mistakes = Mistakes(file)
    check_name(name, mistakes)
    root = check_shape(parse_yaml(data, mistakes), POLICY, mistakes)
    defaults = stricter(above, Isolation())
    isolation = _read_isolation(child(root, "isolation"), defaults, above, mistakes)
    approval = _read_approval(child(root, "approval"), reviewers, mistakes)
    mistakes.stop_if_any(_SUMMARY)
    return Policy(name=name, isolation=isolation, approval=approval, reviewers=reviewers)


def _read_approval(node: Node | None, reviewers: bytes, mistakes: Mistakes) -> ApprovalPolicy:
    diff = number(child(node, "diff"), _DEFAULTS.diff_approvals)
    return ApprovalPolicy(
        plan_approvals=number(child(node, "plan"), _DEFAULTS.plan_approvals),
        diff_approvals=diff,
        rules=_read_rules(child(node, "rules"), diff, mistakes),
        exclude_requester=switch(child(node, "exclude_requester"), default=False),
        valid_ms=_read_valid_for(child(node, "valid_for"), mistakes),
        reviewers_digest=digest_of(reviewers),
        throwaway=switch(child(node, "throwaway"), default=False),
    )


def _read_isolation(
    node: Node | None, defaults: Isolation, above: Isolation, mistakes: Mistakes
) -> Isolation:
    admitted = child(node, "admit_secrets")
    own = Isolation(
        limits=read_limits(
            child(node, "limits"),
            base=defaults.limits,
            above=above.limits,
            mistakes=mistakes,
            label="isolation.limits",
        ),
        tmp_exec=switch(child(node, "tmp_exec"), default=defaults.tmp_exec),
        allow_scripts=switch(child(node, "allow_scripts"), default=defaults.allow_scripts),
        admit_secrets=_read_patterns(admitted, mistakes, "isolation.admit_secrets")
        if admitted
        else defaults.admit_secrets,
        workspace=text(child(node, "workspace"), defaults.workspace),
    )
    _refuse_wider(node, own, above, mistakes)
    return own


def _refuse_wider(node: Node | None, own: Isolation, above: Isolation, mistakes: Mistakes) -> None:
    """Note what is written wider than the level above; its limits are noted already."""
    allowed = stricter(above, own)
    for name in ("tmp_exec", "allow_scripts", "admit_secrets", "workspace"):
        field = child(node, name)
        if field is not None and getattr(own, name) != getattr(allowed, name):
            message = f"isolation.{name}: is wider than the host's policy allows"
            mistakes.add(field.place, message, "leave it out, or ask who runs this host")


def _read_patterns(node: Node | None, mistakes: Mistakes, label: str) -> tuple[str, ...]:
    found = texts(node)
    for pattern, place in found:
        problem = pattern_problem(pattern, git_matters=True)
        if problem:
            mistakes.add(place, f"{label}: {problem.message}", problem.fix)
    return tuple(pattern for pattern, _ in found)


def _read_rules(node: Node | None, diff: int, mistakes: Mistakes) -> tuple[PathRule, ...]:
    rules: list[PathRule] = []
    for position, item in enumerate(items(node)):
        label = f"approval.rules[{position}]"
        rule = PathRule(
            paths=_read_patterns(child(item, "paths"), mistakes, f"{label}.paths"),
            approvals=number(child(item, "approvals"), 0),
            reviewers=tuple(value for value, _ in texts(child(item, "reviewers"))),
        )
        rules.append(rule)
        if not rule.approvals:
            continue  # noted already: it is not there, or not a number
        if rule.approvals <= diff and not rule.reviewers:
            mistakes.add(
                item.place,
                f"{label}: changes nothing: every diff needs {diff} approvals anyway",
                f"ask for {diff + 1} or more, or name its reviewers",
            )
        if rule.reviewers and len(rule.reviewers) < rule.approvals:
            mistakes.add(
                item.place,
                f"{label}: nobody can satisfy it: {rule.approvals} approvals by "
                f"{len(rule.reviewers)} reviewers",
                "name more reviewers, or ask for fewer approvals",
            )
    return tuple(rules)


def _read_valid_for(node: Node | None, mistakes: Mistakes) -> int:
    default = _DEFAULTS.valid_ms
    if node is None:
        return default
    try:
        value = parse_duration(text(node))
    except InputError as error:
        mistakes.add(node.place, f"approval.valid_for: {error.message}")
        return default
    if value > MAX_VALID_MS:
        mistakes.add(node.place, f"approval.valid_for: expected at most 30d, got {text(node)}")
    return value
