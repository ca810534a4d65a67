from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.files.flat_pattern import parse_pattern

_ATOMS = ["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\.", "[]a]", "é", "-"]
_COUNTS = ["", "?", "*", "+", "{2}", "{1,2}", "{1,}", "{0,}", "{0}"]
_PATTERNS = st.lists(
    st.tuples(st.sampled_from(_ATOMS), st.sampled_from(_COUNTS)).map("".join), max_size=5
).map("".join)


@given(_PATTERNS, st.text("abc.1é-]\n", max_size=8))
def test_it_agrees_with_the_engine_it_is_a_part_of(pattern: str, value: str) -> None:
    expected = re.compile(pattern, re.ASCII).fullmatch(value) is not None
    assert parse_pattern(pattern).matches(value) == expected


@pytest.mark.parametrize(
    "pattern",
    ["(a)", "a|b", "^a", "a$", "a**", "a+?", "*a", "[a", "a)", r"\1", r"\b", r"\x41", "a{2", "{2}"],
)
def test_what_could_take_forever_or_mean_two_things_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="is not supported here"):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", ["[z-a]", "a{3,2}", "[a--b]", "[a&&b]"])
def test_what_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="pattern: "):
        parse_pattern(pattern)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except InputError:
        return
    assert pattern.text == text
    assert pattern.matches("x") in (True, False)


def test_a_pattern_that_keeps_a_backtracking_engine_busy_takes_no_time() -> None:
    start = time.perf_counter()
    assert not parse_pattern("a*" * 100 + "b").matches("a" * 256)
    assert time.perf_counter() - start < 5
