"""Patterns as git reads them; the oracle test beside git itself is in the integration lane."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.patterns import parse_ignore_file, parse_patterns


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a", "a", True),
        ("a", "x/a", True),
        ("a", "a/x", False),
        ("/a", "x/a", False),
        ("x/a", "x/a", True),
        ("x/a", "y/x/a", False),
        ("*.o", "x/y.o", True),
        ("x/*.o", "x/y/z.o", False),
        ("**/z", "z", True),
        ("**/z", "x/y/z", True),
        ("x/**", "x/y/z", True),
        ("x/**", "x", False),
        ("x/**/z", "x/z", True),
        ("x/**/z", "x/a/b/z", True),
        ("x**z", "x1z", True),
        ("x**/z", "x1/2/z", True),
        ("a?c", "abc", True),
        ("x/a?c", "x/a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[]x]", "]", True),
        ("[[:digit:]]", "7", True),
        ("[[:nonsense:]]", "n", False),
        ("[a", "[a", False),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("\\#a", "#a", True),
        ("#a", "#a", False),
        ("a ", "a", True),
        ("a\\ ", "a ", True),
        ("a\\", "a\\", False),
        ("", "a", False),
        ("/", "a", False),
        ("*", "new\nline", True),
    ],
)
def test_one_pattern_against_one_path(pattern: str, path: str, matches: bool) -> None:
    decided = parse_patterns([pattern]).decide(path.encode(), is_folder=False)
    assert decided is (True if matches else None)


def test_a_slash_at_the_end_means_folders_only() -> None:
    patterns = parse_patterns(["a/"])
    assert patterns.decide(b"x/a", is_folder=True) is True
    assert patterns.decide(b"x/a", is_folder=False) is None


def test_the_last_one_decides_and_can_take_back() -> None:
    patterns = parse_patterns(["*", "!a", "x/a"])
    assert patterns.decide(b"b", is_folder=False) is True
    assert patterns.decide(b"y/a", is_folder=False) is False
    assert patterns.decide(b"x/a", is_folder=False) is True


def test_a_file_may_have_a_mark_windows_lines_and_any_bytes() -> None:
    patterns = parse_ignore_file(b"\xef\xbb\xbfa\r\n\xff*\r\n# c\n\nb")
    for name in (b"a", b"\xffx", b"b"):
        assert patterns.decide(name, is_folder=False)
    assert patterns.decide(b"# c", is_folder=False) is None


def test_covers_asks_the_nearest_folder_that_is_named() -> None:
    patterns = parse_patterns(["src/", "!src/vendor/", "*.md"])
    assert patterns.covers(b"src/a/b", is_folder=False)
    assert not patterns.covers(b"src/vendor/a/b", is_folder=False)
    assert patterns.covers(b"src/vendor/README.md", is_folder=False)
    assert not patterns.covers(b"other", is_folder=False)
    assert not parse_patterns([]).covers(b"a", is_folder=False)


@given(st.binary(max_size=60), st.binary(min_size=1, max_size=30))
def test_any_bytes_are_a_file_and_any_bytes_a_path(data: bytes, path: bytes) -> None:
    assert parse_ignore_file(data).decide(path, is_folder=True) in (True, False, None)


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "x/" + "*a" * 40 + "b", "**/*a" * 12 + "b"])
def test_a_hostile_pattern_costs_little_time(pattern: str) -> None:
    patterns = parse_patterns([pattern])
    started = time.monotonic()
    patterns.decide(b"x/" + b"a" * 255, is_folder=False)
    patterns.decide(b"/".join([b"a" * 50] * 60), is_folder=False)
    assert time.monotonic() - started < 2
