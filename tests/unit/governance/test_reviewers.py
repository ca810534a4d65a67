"""The reviewers file: what is read, and every mistake with its line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.governance.reviewers import MAX_ENTRIES, MAX_FILE, parse_reviewers
from harness.governance.ssh_keys import parse_key_blob
from harness.model.digest import digest_of
from tests.fakes.ssh_signer import make_signer

A, B, C = make_signer(1), make_signer(2), make_signer(3, application=b"ssh:")
KEY = A.public_text


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_reviewers(text.encode(), name="people")
    return [str(issue) for issue in caught.value.issues]


def test_names_options_comments_and_blank_lines_are_read() -> None:
    text = (
        "# people\n\n"
        f"alice,al@x.org {A.public_text} a comment, with words\n"
        f'\tbob namespaces="plan-approval@harness,git",valid-after="20260101Z",'
        f'valid-before="202606301200Z" {B.public_text}\n'
        f"alice,al@x.org {C.public_text}"
    ).encode()
    found = parse_reviewers(text)
    assert found.digest == digest_of(text)
    assert [(entry.person, entry.line) for entry in found.entries] == [
        ("alice", 3),
        ("bob", 4),
        ("alice", 5),
    ]
    bob = found.by_key(parse_key_blob(B.blob))
    assert bob is not None
    assert bob.namespaces == ("plan-approval@harness", "git")
    assert bob.valid_after == datetime(2026, 1, 1, tzinfo=UTC)
    assert bob.valid_before == datetime(2026, 6, 30, 12, tzinfo=UTC)
    assert found.person_of("al@x.org") == "alice"
    assert found.person_of("mallory") is None
    assert found.persons("plan-approval@harness") == {"alice", "bob"}
    assert found.persons("diff-approval@harness") == {"alice"}


def test_a_window_counts_both_of_its_ends_to_the_second() -> None:
    text = f'a valid-after="20260101Z",valid-before="20260102000000Z" {KEY}\n'
    (entry,) = parse_reviewers(text.encode()).entries
    cases = {
        datetime(2025, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC): False,
        datetime(2026, 1, 1, tzinfo=UTC): True,
        datetime(2026, 1, 2, 0, 0, 0, 999_000, tzinfo=UTC): True,
        datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC): False,
    }
    assert {moment: entry.is_valid_at(moment) for moment in cases} == cases


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"* {KEY}", "name '*' is a pattern"),
        (f"*@x.org {KEY}", "is a pattern"),
        (f"!bob,alice {KEY}", "name '!bob' is a pattern"),
        (f'"al ice" {KEY}', "expected letters"),
        (f"a,,b {KEY}", "name '': expected letters"),
        (f"bob,Bob {KEY}", "repeat one"),
        (f"a cert-authority {KEY}", "certificates are not accepted"),
        (f'a cert-authority,namespaces="x" {KEY}', "certificates are not accepted"),
        (f'a namespaces="*" {KEY}', "expected a literal name"),
        (f'a namespaces="" {KEY}', "expected a literal name"),
        (f'a namespaces="x",namespaces="y" {KEY}', "is given twice"),
        (f'a Namespaces="x" {KEY}', "option 'Namespaces'"),
        (f"a no-touch-required {KEY}", "option 'no-touch-required'"),
        (f"a namespaces {KEY}", "and a quoted value"),
        (f'a namespaces="x", {KEY}', "are malformed"),
        (f'a namespaces="x"valid-after="20260101Z" {KEY}', "are malformed"),
        (f'a namespaces="x {KEY}', "are malformed"),
        (f'a valid-after="20260101" {KEY}', "write 20260101Z: without Z"),
        (f'a valid-before="2026" {KEY}', "expected YYYYMMDDZ"),
        (f'a valid-before="20260230Z" {KEY}', "day is out of range"),
        (f'a valid-after="20260102Z",valid-before="20260102Z" {KEY}', "after valid-after"),
        ("a ssh-rsa AAAAB3NzaC1yc2E=", "got 'ssh-rsa'"),
        ("a ecdsa-sha2-nistp256 AAAA", "got 'ecdsa-sha2-nistp256'"),
        ("a ssh-ed25519-cert-v01@openssh.com AAAA", "got 'ssh-ed25519-cert-v01@openssh.com'"),
        ("a ssh-ed25519", "expected a name, options, a key type and a key"),
        ("a", "expected a name, options, a key type and a key"),
        (f"a ssh-ed25519 {KEY.split()[1][:-4]}", "public key"),
        (f"a {KEY}\r", "carriage return"),
        (f"a {KEY} \x1b[2J", "does not print"),
        (f"a {KEY} \u202e", "does not print"),
    ],
)
def test_each_mistake_is_named_with_its_line(line: str, message: str) -> None:
    (mistake,) = mistakes_of(f"# first\n{line}\n")
    assert mistake.startswith("people:2:1: ")
    assert message in mistake


def test_bytes_that_are_not_utf8_are_named() -> None:
    with pytest.raises(InputError) as caught:
        parse_reviewers(f"a {KEY} ".encode() + b"\xff\n")
    assert "is not UTF-8" in str(caught.value.issues[0])


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    text = f"* {KEY}\nb {B.public_text}\nc ssh-rsa AAAA\nd {B.public_text}\n"
    assert [mistake.split(" ")[0] for mistake in mistakes_of(text)] == [
        "people:1:1:",
        "people:3:1:",
        "people:4:1:",
    ]


def test_a_key_belongs_to_one_person_and_one_line() -> None:
    (twice,) = mistakes_of(f"a {KEY}\na {KEY}\n")
    assert "people:2:1: key is on line 1 already" in twice
    (shared,) = mistakes_of(f"a {KEY}\nb {KEY}\n")
    assert "a key belongs to one person" in shared


def test_a_point_is_one_key_in_software_and_on_a_device() -> None:
    fido = make_signer(1, application=b"ssh:")
    (same,) = mistakes_of(f"a {KEY}\nb {fido.public_text}\n")
    assert "key is on line 1 already" in same


@pytest.mark.parametrize("second", ["al", "al,alice", "alice", "ALICE,al"])
def test_names_of_one_person_are_the_same_on_every_line(second: str) -> None:
    (mixed,) = mistakes_of(f"alice,al {KEY}\n{second} {B.public_text}\n")
    assert "people:2:1: name " in mixed
    assert "is on line 1 with other names or spelling" in mixed


def test_an_empty_file_is_no_reviewers_file() -> None:
    assert mistakes_of("# nobody\n") == ["people:1:1: expected at least one reviewer, got none"]


def test_limits_come_first() -> None:
    with pytest.raises(InputError, match=f"at most {MAX_FILE} bytes"):
        parse_reviewers(b"#" * (MAX_FILE + 1))
    many = "".join(f"p{n} {make_signer(n).public_text}\n" for n in range(MAX_ENTRIES + 1))
    (mistake,) = mistakes_of(many)
    assert f"expected at most {MAX_ENTRIES} keys, got {MAX_ENTRIES + 1}" in mistake


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8"))))
def test_any_bytes_give_reviewers_or_a_typed_refusal(data: bytes) -> None:
    for text in (data, b"a " + data, f"a {KEY} ".encode() + data):
        try:
            found = parse_reviewers(text)
        except InputError as error:
            assert error.issues  # noqa: PT017 - both outcomes are right; each is checked
        else:
            assert found.entries
