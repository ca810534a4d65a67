"""Times as text: RFC 3339, UTC, whole milliseconds, always `Z`. Pure; the clock is elsewhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from harness.errors import InputError

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DURATION = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def format_time(moment: datetime) -> str:
    """Return `2026-01-31T12:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime:
    """Read what `format_time` wrote.

    Raises:
        InputError: any other spelling.
    """
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise InputError(f"time: expected YYYY-MM-DDTHH:MM:SS.mmmZ, got {text!r:.60}")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"time: {error}") from error


def add_ms(text: str, milliseconds: int) -> str:
    """Return a time that many milliseconds later."""
    return format_time(parse_time(text) + timedelta(milliseconds=milliseconds))


def parse_duration(text: str) -> int:
    """Read `500ms`, `30s`, `10m`, `2h` or `7d`; return milliseconds.

    Raises:
        InputError: any other spelling, or zero.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match or int(match[1]) == 0:
        raise InputError(f"duration: expected a number and ms, s, m, h or d, got {text!r:.40}")
    return int(match[1]) * _UNIT_MS[match[2]]


def show_duration(milliseconds: int) -> str:
    """Return a duration for people: `0.4 s`, `12 s`, `3 min 20 s`, `2 h`."""
    seconds = milliseconds / 1000
    if seconds < 10:  # noqa: PLR2004 - below ten seconds the tenths matter
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    hours, minutes_left = divmod(minutes, 60)
    if hours == 0:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{hours} h {minutes_left} min" if minutes_left else f"{hours} h"
