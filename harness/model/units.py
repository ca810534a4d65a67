"""Amounts as people write them in files: `1.5` cpus, `512MiB`, `10m`, and plain counts.

Rules: sizes are whole numbers of B, KiB, MiB, GiB or TiB (IEC 80000-13); `M` and `MB` mean two
different things to different tools and are refused. Every amount has an exact spelling back.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal

from harness.errors import InputError
from harness.model.clock import parse_duration

Unit = Literal["cpus", "size", "time", "count"]

SIZE_PATTERN = "^[0-9]{1,15}(B|KiB|MiB|GiB|TiB)$"
TIME_PATTERN = "^[0-9]{1,9}(ms|s|m|h|d)$"

_SIZES = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_TIMES = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_SIZE = re.compile(r"([0-9]{1,15})(B|KiB|MiB|GiB|TiB)")
_OTHER_SIZE = re.compile(r"([0-9]+) *([kmgt])?i?b?", re.IGNORECASE)
_MILLIS = 1000


def parse_size(text: str) -> int:
    """Read `512MiB`; return bytes.

    Raises:
        InputError: any other spelling; the hint names the one that was probably meant.
    """
    match = _SIZE.fullmatch(text)
    if match:
        return int(match[1]) * _SIZES[match[2]]
    raise InputError(
        f"size: expected a number and B, KiB, MiB, GiB or TiB, got {text!r:.40}",
        hint=suggest_size(text),
    )


def suggest_size(text: str) -> str:
    """Return how a size in another spelling is written here; empty when it is no size."""
    match = _OTHER_SIZE.fullmatch(text.strip())
    if not match:
        return ""
    unit = f"{match[2].upper()}iB" if match[2] else "B"
    return f"write {match[1]:.15}{unit}"


def parse_amount(unit: Unit, value: object) -> int:
    """Read an amount from a file: thousandths of a cpu, bytes, milliseconds or a count.

    Raises:
        InputError: it is not an amount of this unit.
    """
    if unit == "size" and isinstance(value, str):
        return parse_size(value)
    if unit == "time" and isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or unit in ("size", "time"):
        raise InputError(f"{unit}: expected an amount, got {value!r:.40}")
    scaled = Decimal(value) * (_MILLIS if unit == "cpus" else 1)
    if scaled != scaled.to_integral_value():
        digits = "at most three digits after the point" if unit == "cpus" else "a whole number"
        raise InputError(f"amount: expected {digits}, got {value}")
    return int(scaled)


def spell_amount(unit: Unit, amount: int) -> str:
    """Return an amount as a file would have it, exactly."""
    if unit == "cpus":
        return f"{Decimal(amount) / _MILLIS:f}"
    if unit == "count":
        return str(amount)
    for suffix, factor in (_SIZES if unit == "size" else _TIMES).items():
        if amount % factor == 0 and amount:
            return f"{amount // factor}{suffix}"
    return "0B" if unit == "size" else "0ms"
