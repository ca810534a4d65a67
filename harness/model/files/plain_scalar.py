"""What an unquoted YAML value means here: far less than YAML 1.1 would read into it.

Rules:
    * `true`, `false`, `null`, decimal integers (`0`, `-7`, `512`) and decimal fractions (`1.5`)
      mean what they say. Fractions are `Decimal`: nothing here is ever a float.
    * A spelling that any YAML version takes for something other than text (`no`, `010`, `0x1f`,
      `1_000`, `12:30`, `1e3`, `.inf`, `~`, `2026-01-31`) is a `Surprise`: it must be quoted.
    * Everything else is text.

Sources: the type registry of YAML 1.1 (yaml.org/type: bool, int, float, null, timestamp, merge,
value) and the core schema of YAML 1.2.2, section 10.3.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

Scalar: TypeAlias = bool | int | Decimal | str | None

MAX_INTEGER = 2**53 - 1
"""The largest integer that canonical JSON can carry (RFC 8785, section 3.2.2.3)."""

_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None, "": None}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}")
_NUMBER_LIKE = r"""[-+]?(?:
    0b[01_]+ | 0o?[0-7_]+ | 0x[0-9a-f_]+
    | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    | (?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?
    | \.(?:inf|nan)
)"""
_DATE_LIKE = r"""[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
    (?:(?:t|[ ]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}[-+0-9:.z ]*)?"""

_SURPRISES = tuple(
    (re.compile(pattern, re.VERBOSE | re.IGNORECASE), meaning, fix)
    for pattern, meaning, fix in (
        ("yes|no|on|off|y|n|true|false", "a boolean", "write true or false, or "),
        ("~|null", "null", "leave the field out, or "),
        ("<<|=", "a special sign", ""),
        (_NUMBER_LIKE, "a number", "write it in plain decimal, or "),
        (_DATE_LIKE, "a date", ""),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """An unquoted value that some YAML reader takes for something else than text.

    Attributes:
        message: what is wrong.
        fix: what to write instead.
    """

    message: str
    fix: str


def read_plain(text: str) -> Scalar | Surprise:
    """Return what an unquoted value means, or why it must be quoted."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and abs(int(text)) <= MAX_INTEGER:
        return int(text)
    if _FRACTION.fullmatch(text):
        return Decimal(text)
    for pattern, meaning, fix in _SURPRISES:
        if pattern.fullmatch(text):
            return Surprise(
                message=f"{text:.40} is {meaning} to some YAML readers",
                fix=f'{fix}quote it: "{text:.40}"',
            )
    return text
