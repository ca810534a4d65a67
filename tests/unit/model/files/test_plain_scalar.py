from __future__ import annotations

from decimal import Decimal

import pytest

from harness.model.files.plain_scalar import MAX_INTEGER, Scalar, Surprise, read_plain


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("512", 512),
        (str(MAX_INTEGER), MAX_INTEGER),
        ("1.5", Decimal("1.5")),
        ("-0.25", Decimal("-0.25")),
    ],
)
def test_the_few_words_and_numbers_mean_what_they_say(text: str, meaning: Scalar) -> None:
    found = read_plain(text)
    assert found == meaning
    assert type(found) is type(meaning)


@pytest.mark.parametrize(
    "text",
    """
    yes no on off y n Yes NO On OFF Y N True TRUE False FALSE
    ~ Null NULL << =
    010 -010 +1 -0 0o10 0x1F 0b11 1_000 00 9007199254740992 99999999999999999999
    12:30 1:2:3 190:20:30.15
    .5 1. 1e3 1E-3 1.5e3 -.5 1_0.5 .inf -.Inf .NaN 01.5
    2026-01-31 2001-1-1 2001-12-14t21:59:43.10-05:00
    """.split(),  # noqa: SIM905 - a table of words
)
def test_what_some_yaml_reads_as_more_than_text_must_be_quoted(text: str) -> None:
    found = read_plain(text)
    assert isinstance(found, Surprise)
    assert f'quote it: "{text}"' in found.fix


@pytest.mark.parametrize(
    "text",
    """
    python pytest -q --strict 3.11.2 v1 10m 512MiB 1.5.0 0x 0xg a_b 1a e3 . .. / nope online yeast
    2026-01 2026-01-31x 1:99 12:30pm =x <<x ~/x src/** nullable truest 1.2.3 - +
    """.split(),  # noqa: SIM905 - a table of words
)
def test_everything_else_is_text(text: str) -> None:
    assert read_plain(text) == text
