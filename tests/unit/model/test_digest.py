"""Digests: one spelling, and short forms only for looking."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.digest import (
    digest_from_hex,
    digest_of,
    is_short_digest,
    parse_digest,
    parse_given_digest,
    short,
)

HEX = "0123456789abcdef" * 4


@given(st.binary())
def test_a_digest_is_sha256_and_reads_back(data: bytes) -> None:
    digest = digest_of(data)
    assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert parse_digest(digest) == parse_given_digest(digest[7:]) == digest
    assert digest_from_hex(digest[7:]) == digest
    assert is_short_digest(short(digest))


@pytest.mark.parametrize(
    "text",
    [
        HEX,
        "sha256:" + HEX[:-1],
        "sha256:" + HEX + "0",
        "sha256:" + HEX.upper(),
        "sha256:" + HEX + "\n",
        "sha512:" + HEX,
        "",
        None,
        7,
        b"sha256:" + HEX.encode(),
    ],
)
def test_other_spellings_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="expected sha256: and 64 hex digits"):
        parse_digest(text)


def test_a_shortened_hash_is_good_for_looking_only() -> None:
    assert is_short_digest(HEX[:12])
    with pytest.raises(InputError, match="expected all 64 hex digits, got 12") as caught:
        parse_given_digest(HEX[:12])
    assert "never to sign" in caught.value.hint


@pytest.mark.parametrize("text", [HEX[:11], "latest", "", HEX[:12].upper(), HEX[:12] + "\n"])
def test_what_is_no_hash_at_all_is_refused(text: str) -> None:
    assert not is_short_digest(text)
    with pytest.raises(InputError, match="expected 64 hex digits"):
        parse_given_digest(text)
