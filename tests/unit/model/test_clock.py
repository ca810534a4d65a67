"""Times and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.clock import add_ms, format_time, parse_duration, parse_time, show_duration

moments = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone itself
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001 - as above
    timezones=st.just(UTC),
)


@given(moments)
def test_times_read_back_to_the_millisecond(moment: datetime) -> None:
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert parse_time(format_time(moment)) == whole


@given(moments, moments)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    assert (format_time(one) < format_time(other)) == (
        parse_time(format_time(one)) < parse_time(format_time(other))
    )


def test_a_time_of_another_zone_is_written_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert format_time(datetime(2026, 1, 31, 14, 0, tzinfo=east)) == "2026-01-31T12:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.000+00:00",
        "2026-01-31 12:00:00.000Z",
        "2026-02-30T12:00:00.000Z",
        "2026-01-31T24:00:00.000Z",
        "2026-01-31T12:00:00.000Z\n",
        "",
        None,
    ],
)
def test_other_spellings_of_a_time_are_refused(text: object) -> None:
    with pytest.raises(InputError, match=r"^time: "):
        parse_time(text)


def test_milliseconds_are_added_over_a_border() -> None:
    assert add_ms("2026-12-31T23:59:59.999Z", 1) == "2027-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("30s", 30_000), ("10 m", 600_000), ("2h", 7_200_000), (" 7d ", 604_800_000)],
)
def test_durations_are_read(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "0s", "10", "-1s", "1.5h", "1 week", "1S", "9999999999s"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^duration: "):
        parse_duration(text)


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0.0 s"),
        (400, "0.4 s"),
        (12_000, "12 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (7_200_000, "2 h"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_durations_are_shown_for_people(milliseconds: int, shown: str) -> None:
    assert show_duration(milliseconds) == shown
