r"""A pattern for parameter values: the part of regular expressions that can be matched in no time.

A pattern is a row of characters, `.`, `\d`-like escapes and `[classes]`, each with an optional
`?`, `*`, `+` or `{m,n}`. No groups, no `|`, no look-around: with those a short hostile pattern can
keep a backtracking engine busy for years (CWE-1333). It matches a value as a whole, ASCII classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors import InputError

_ATOM = re.compile(
    r"""(?P<one> \[ \^? \]? (?:\\[^\n]|[^\]\\\[\n])* \] | \\[^\n] | [^\\\[\](){}|*+?^$\n] )
        (?P<count> [*+?] | \{[0-9]{1,3}(?:,[0-9]{0,3})?\} )?""",
    re.VERBOSE,
)
_ESCAPES = re.compile(r"\\[dDsSwW]|\\[^A-Za-z0-9]")
_SET_OPERATION = re.compile(r"--|&&|~~|\|\|")
_COUNTS = {"": (1, 1), "?": (0, 1), "*": (0, 1 << 16), "+": (1, 1 << 16)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One character's class, and how often it may stand in a row."""

    one: re.Pattern[str]
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPattern:
    """A pattern, read.

    Attributes:
        text: as written.
        parts: what it is made of.
    """

    text: str
    parts: tuple[_Part, ...]

    def matches(self, value: str) -> bool:
        """Tell whether the whole value matches; the work grows with the product of the lengths."""
        reached = {0}
        for part in self.parts:
            reached = _advance(part, value, reached)
        return len(value) in reached


def _advance(part: _Part, value: str, starts: set[int]) -> set[int]:
    """Return every position that can be reached from one of the starts."""
    reached: set[int] = set()
    for start in starts:
        end = start
        while True:
            if end - start >= part.least:
                reached.add(end)
            if end - start == part.most or end == len(value) or not part.one.match(value, end):
                break
            end += 1
    return reached


def parse_pattern(text: str) -> FlatPattern:
    """Read a pattern.

    Raises:
        InputError: it has groups, alternatives, anchors or escapes that are not known here.
    """
    parts: list[_Part] = []
    position = 0
    while position < len(text):
        match = _ATOM.match(text, position)
        if not match:
            raise InputError(f"pattern: {text[position:]!r:.40} is not supported here")
        parts.append(_read_part(match["one"], match["count"] or ""))
        position = match.end()
    return FlatPattern(text=text, parts=tuple(parts))


def _read_part(one: str, count: str) -> _Part:
    if _SET_OPERATION.search(one):
        raise InputError(f"pattern: {one:.40} may come to mean a set operation; escape the sign")
    for escape in re.findall(r"\\.", one):
        if not _ESCAPES.fullmatch(escape):
            raise InputError(f"pattern: the escape {escape} is not supported here")
    if count.startswith("{"):
        least_text, comma, most_text = count[1:-1].partition(",")
        least = int(least_text)
        most = int(most_text) if most_text else (_COUNTS["*"][1] if comma else least)
    else:
        least, most = _COUNTS[count]
    if most < least:
        raise InputError(f"pattern: expected the smaller count first, got {count}")
    try:
        return _Part(one=re.compile(one, re.ASCII), least=least, most=most)
    except re.error as error:
        raise InputError(f"pattern: {one:.40}: {error.msg}") from error
