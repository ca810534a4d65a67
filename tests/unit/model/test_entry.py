"""One line of the ledger: what it holds and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.errors import InputError, NewerStateError
from harness.model.canonical import canonical_bytes
from harness.model.digest import digest_of
from harness.model.entry import MAX_ENTRY, Entry, parse_entry


def entry(body: Mapping[str, Any] | None = None) -> Entry:
    return Entry(
        seq=3,
        time="2026-01-31T12:00:00.000Z",
        prev=digest_of(b"before"),
        verb="approve",
        phase="done",
        project="demo",
        body={"gate": "plan"} if body is None else body,
        notes={},
    )


def test_a_line_reads_back() -> None:
    assert parse_entry(entry().to_bytes()) == entry()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("verb", "delete", "unknown verb 'delete'"),
        ("phase", "begun", "unknown verb 'approve' or phase"),
        ("seq", -1, "expected a seq from 0, got -1"),
        ("seq", "3", "expected seq of type int, got str"),
        ("seq", True, "expected seq of type int, got bool"),
        ("project", None, "expected project of type str, got NoneType"),
        ("body", [["gate", "plan"]], "expected body of type dict, got list"),
        ("notes", "x", "expected notes of type dict, got str"),
        ("time", "yesterday", "time: expected"),
        ("prev", "sha256:00", "digest: expected"),
        ("extra", 1, "unknown or missing members"),
        ("_type", "harness/other/v1", "expected _type"),
    ],
)
def test_a_malformed_line_is_refused(name: str, value: object, message: str) -> None:
    members = json.loads(entry().to_bytes())
    members[name] = value
    with pytest.raises(InputError, match=message):
        parse_entry(canonical_bytes(members))


def test_an_entry_of_a_later_version_asks_for_an_upgrade() -> None:
    members = {**json.loads(entry().to_bytes()), "_type": "harness/entry/v2"}
    with pytest.raises(NewerStateError, match="expected version 1 at most, got version 2"):
        parse_entry(canonical_bytes(members))


@pytest.mark.parametrize("name", ["seq", "time", "prev", "verb", "phase", "project", "body"])
def test_a_missing_member_is_refused(name: str) -> None:
    members = json.loads(entry().to_bytes())
    del members[name]
    with pytest.raises(InputError, match="unknown or missing members"):
        parse_entry(canonical_bytes(members))


def test_another_spelling_of_the_same_entry_is_refused() -> None:
    with pytest.raises(InputError, match="not in canonical form"):
        parse_entry(entry().to_bytes().replace(b":3,", b": 3,"))


def test_the_length_limit_is_exact() -> None:
    room = MAX_ENTRY - len(entry({"text": ""}).to_bytes())
    longest = entry({"text": "x" * room})
    assert len(longest.to_bytes()) == MAX_ENTRY
    assert parse_entry(longest.to_bytes()) == longest
    with pytest.raises(InputError, match=r"expected at most 65535 bytes, got 65536"):
        entry({"text": "x" * (room + 1)}).to_bytes()
    with pytest.raises(InputError, match=r"expected at most 65535 bytes, got 65536"):
        parse_entry(longest.to_bytes() + b" ")
