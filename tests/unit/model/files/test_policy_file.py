from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import InputError
from harness.model.digest import digest_of
from harness.model.files.policy_file import read_host_isolation, read_policy, reviewers_file_of
from harness.model.limits import GIB, Isolation, Limits
from harness.model.policy import ApprovalPolicy, PathRule, Policy

LEAST = "version: 1\napproval:\n  reviewers: reviewers\n"


def read(text: str, above: Isolation | None = None, name: str = "default") -> Policy:
    return read_policy(text.encode(), "p.yaml", name=name, reviewers=b"keys", above=above)


def mistakes_in(text: str, above: Isolation | None = None) -> list[str]:
    with pytest.raises(InputError, match="policy is not valid") as caught:
        read(text, above)
    return [str(issue) for issue in caught.value.issues]


def test_the_least_policy_has_the_defaults_of_the_model() -> None:
    policy = read(LEAST)
    assert policy.isolation == Isolation()
    assert policy.approval == ApprovalPolicy(reviewers_digest=digest_of(b"keys"))
    assert (policy.name, policy.reviewers) == ("default", b"keys")


def test_a_whole_policy() -> None:
    policy = read("""\
version: 1
isolation:
  limits: {cpus: 0.5, memory: 8GiB, wall: 1h, idle: 1m}
  tmp_exec: false
  allow_scripts: true
  admit_secrets: [tests/keys/*]
  workspace: copy
approval:
  plan: 2
  diff: 1
  rules:
    - {paths: [src/auth/**], approvals: 2, reviewers: [ada, bo]}
  exclude_requester: true
  valid_for: 2h
  reviewers: people
  throwaway: true
""")
    assert policy.isolation == Isolation(
        limits=replace(
            Limits(), cpu_millis=500, memory_bytes=8 * GIB, wall_ms=3_600_000, idle_ms=60_000
        ),
        tmp_exec=False,
        allow_scripts=True,
        admit_secrets=("tests/keys/*",),
        workspace="copy",
    )
    assert policy.approval == ApprovalPolicy(
        plan_approvals=2,
        rules=(PathRule(paths=("src/auth/**",), approvals=2, reviewers=("ada", "bo")),),
        exclude_requester=True,
        valid_ms=7_200_000,
        reviewers_digest=digest_of(b"keys"),
        throwaway=True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 1\n", "p.yaml:1:1: field 'approval' is missing"),
        ("version: 1\napproval: {}\n", "p.yaml:2:11: field 'reviewers' is missing in approval"),
        (LEAST + "  plan: 0\n", "p.yaml:4:9: approval.plan: expected at least 1, got 0"),
        (LEAST + "  diff: 17\n", "p.yaml:4:9: approval.diff: expected at most 16, got 17"),
        (LEAST + "  plan: true\n", "approval.plan: expected a whole number, got true"),
        (LEAST + "  exclude_requester: yes\n", "p.yaml:4:22: yes is a boolean to some YAML"),
        (LEAST + "  valid_for: 31d\n", "approval.valid_for: expected at most 30d, got 31d"),
        (LEAST + "  valid_for: 0s\n", "approval.valid_for: duration: expected a number"),
        (LEAST + "  approvals: 2\n", "unknown field 'approvals' in approval"),
        (LEAST.replace(": reviewers", ": ../keys"), "p.yaml:3:14: approval.reviewers: expected"),
        (LEAST.replace(": reviewers", ": /etc/keys"), "approval.reviewers: expected something"),
        (LEAST + "isolation: {network: host}\n", "unknown field 'network' in isolation"),
        (LEAST + "isolation: {limits: {wall: 25h}}\n", "limit wall: expected at most 1d, got 25h"),
        (LEAST + "isolation: {limits: {cpus: 300}}\n", "cpus: expected at most 256, got 300"),
        (LEAST + "isolation: {admit_secrets: [../x]}\n", "isolation.admit_secrets: '../x' holds"),
        (
            LEAST + "  diff: 2\n  rules: [{paths: [a], approvals: 2}]\n",
            "p.yaml:5:11: approval.rules[0]: changes nothing: every diff needs 2 approvals anyway",
        ),
        (
            LEAST + "  rules: [{paths: [a], approvals: 2, reviewers: [ada]}]\n",
            "approval.rules[0]: nobody can satisfy it: 2 approvals by 1 reviewers",
        ),
        (LEAST + "  rules: [{paths: [], approvals: 2}]\n", "paths: expected at least 1 items"),
        (LEAST + "  rules: [{paths: [a], approvals: 0}]\n", "approvals: expected at least 1"),
        (LEAST + "  rules: [{paths: [/a/b], approvals: 2}]\n", "rules[0].paths: '/a/b' is an abso"),
    ],
)
def test_bad_policies(text: str, expected: str) -> None:
    found = mistakes_in(text)
    assert len(found) == 1, found
    assert expected in found[0]


def test_the_reviewers_file_is_known_before_anything_else() -> None:
    assert reviewers_file_of(LEAST.encode(), "p") == "reviewers"
    assert reviewers_file_of((LEAST + "  plan: 0\n").encode(), "p") == "reviewers"
    with pytest.raises(InputError, match="policy is not valid: 1 mistake"):
        reviewers_file_of(LEAST.replace(": reviewers", ": ../x").encode(), "p")
    with pytest.raises(InputError, match="policy is not valid: 1 mistake"):
        reviewers_file_of(b"version: 1\n", "p")


def test_the_reviewers_bytes_are_part_of_the_policy_digest() -> None:
    data = LEAST.encode()
    digests = {
        read_policy(data, "p", name="p", reviewers=keys).approval.digest for keys in (b"a", b"b")
    }
    assert len(digests) == 2


def test_a_host_policy_restricts_only_what_it_names() -> None:
    host = read_host_isolation(b"version: 1\nisolation: {limits: {memory: 1GiB}}\n", "h")
    text = LEAST + "isolation: {allow_scripts: true, admit_secrets: [a], limits: {wall: 3h}}\n"
    isolation = read(text, host).isolation
    assert isolation.limits == replace(Limits(), memory_bytes=GIB, wall_ms=3 * 3_600_000)
    assert isolation.allow_scripts
    assert isolation.admit_secrets == ("a",)
    assert read(LEAST, host).isolation.allow_scripts is False


def test_what_is_wider_than_the_host_allows_is_refused_at_its_place() -> None:
    host = read_host_isolation(
        b"version: 1\n"
        b"isolation:\n"
        b"  allow_scripts: false\n"
        b"  tmp_exec: false\n"
        b"  admit_secrets: [a]\n"
        b"  workspace: copy\n"
        b"  limits: {memory: 1GiB}\n",
        "h",
    )
    found = mistakes_in(
        LEAST + "isolation:\n"
        "  allow_scripts: true\n"
        "  tmp_exec: true\n"
        "  admit_secrets: [a, b]\n"
        "  workspace: overlay\n"
        "  limits: {memory: 2GiB}\n",
        host,
    )
    assert [line.split(" (fix")[0] for line in found] == [
        "p.yaml:5:18: isolation.allow_scripts: is wider than the host's policy allows",
        "p.yaml:6:13: isolation.tmp_exec: is wider than the host's policy allows",
        "p.yaml:7:18: isolation.admit_secrets: is wider than the host's policy allows",
        "p.yaml:8:14: isolation.workspace: is wider than the host's policy allows",
        "p.yaml:9:20: limit memory: expected at most 1GiB, got 2GiB",
    ]
    assert read(LEAST, host).isolation == replace(
        host, admit_secrets=(), limits=replace(Limits(), memory_bytes=GIB)
    )


def test_a_host_policy_has_nothing_about_approval() -> None:
    with pytest.raises(InputError, match="host policy is not valid: 1 mistake"):
        read_host_isolation(b"version: 1\nisolation: {}\napproval: {}\n", "h")


def test_the_file_name_must_be_a_name() -> None:
    with pytest.raises(InputError) as caught:
        read(LEAST, name="Default Policy")
    assert "file name: expected lower-case letters" in str(caught.value.issues[0])
