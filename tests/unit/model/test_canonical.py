"""Canonical bytes: one spelling out, one spelling in."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.canonical import MAX_DEPTH, canonical_bytes, parse_canonical, parse_json

KIND = "harness/test/v1"
LIMIT = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-LIMIT, LIMIT) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts.filter(lambda name: name != "_type"), values, max_size=3).map(
    lambda members: {**members, "_type": KIND}
)


@given(objects)
def test_what_is_written_reads_back_the_same(value: dict[str, Any]) -> None:
    data = canonical_bytes(value)
    assert json.loads(data) == value
    assert parse_canonical(data, KIND) == value


@given(objects, st.integers(0, 3), st.booleans())
def test_any_other_spelling_is_refused_as_the_library_would(
    value: dict[str, Any], indent: int, ascii_only: bool
) -> None:
    data = json.dumps(value, indent=indent or None, ensure_ascii=ascii_only).encode()
    if data == rfc8785.dumps(value):
        assert parse_canonical(data, KIND) == value
    else:
        with pytest.raises(InputError, match="not in canonical form"):
            parse_canonical(data, KIND)


@given(st.dictionaries(st.text('ab\x7f\\"/\n\x00', max_size=3), st.integers() | st.text("a\b\t")))
def test_the_quick_check_and_the_library_agree(members: dict[str, Any]) -> None:
    compact = {**members, "_type": KIND}
    data = json.dumps(compact, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    try:
        expected = rfc8785.dumps(compact) == data
    except rfc8785.CanonicalizationError:
        expected = False
    try:
        parse_canonical(data, KIND)
    except InputError:
        assert not expected
    else:
        assert expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1.5}, "expected an integer, got the float 1.5"),
        ({"a": [{"b": float("nan")}]}, "got the float nan"),
        ({"a": LIMIT + 1}, "canonical form"),
        ({"a": "\ud800"}, "canonical form"),
        ({1: "a"}, "canonical form"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        canonical_bytes(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"a":2}', "duplicate key 'a'"),
        (b'{"a":1.0}', "is not an integer"),
        (b'{"a":1e3}', "is not an integer"),
        (b'{"a":NaN}', "is not an integer"),
        (b'{"a":-Infinity}', "is not an integer"),
        (b"\xff", "json"),
        (b"\xef\xbb\xbf{}", "json"),
        (b"{", "json"),
        (b"{} {}", "json"),
        (b"[" * 100_000, "json"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "nested deeper"),
    ],
)
def test_what_is_not_strict_json_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_json(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "expected an object, got list"),
        (b"{}", "expected _type 'harness/test/v1', got None"),
        (b'{"_type":"harness/other/v1"}', "got 'harness/other/v1'"),
        (b'{"_type": "harness/test/v1"}', "not in canonical form"),
        (b'{"_type":"harness\\/test/v1"}', "not in canonical form"),
        (b'{"_type":"harness/test/v1","a":-0}', "not in canonical form"),
        (b'{"_type":"harness/test/v1","a":"\\u0041"}', "not in canonical form"),
        (b'{"_type":"harness/test/v1","a":9007199254740992}', "canonical form"),
        (b'{"_type":"harness/test/v1","a":"\\ud800"}', "canonical form"),
        (b'{"_type":"harness/test/v1"}\n', "not in canonical form"),
    ],
)
def test_bytes_of_another_kind_or_spelling_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_canonical(data, KIND)


def test_keys_are_sorted_by_utf16_units() -> None:
    # U+1F600 is D83D DE00 in UTF-16 and so sorts before U+FB33, against code point order.
    data = canonical_bytes({"\ufb33": 1, "\U0001f600": 2})
    assert data == '{"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize("name", [1, None, True, b"a"])
def test_a_key_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="canonical form: expected text as a key, got"):
        canonical_bytes({"a": {name: 1}})  # type: ignore[dict-item]  # the point


@given(objects)
def test_the_quick_form_is_the_library_s(value: dict[str, Any]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)
