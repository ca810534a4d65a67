"""Amounts for people."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def show_size(amount: int) -> str:
    """Return bytes as `512 B`, `1.2 MiB` or `4 GiB`."""
    value = float(amount)
    for unit in _UNITS[:-1]:
        if value < _STEP:
            return f"{value:.1f}".removesuffix(".0") + f" {unit}"
        value /= _STEP
    return f"{value:.1f} {_UNITS[-1]}"


def count(number: int, noun: str) -> str:
    """Return `1 file` or `3 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show_names(names: Sequence[str]) -> str:
    """Return the names of operations, short: the first one, and how many more there are."""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else ""
