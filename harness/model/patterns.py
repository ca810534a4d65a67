"""Patterns over paths, spelled and matched as in a `.gitignore` file.

Source of the rules: gitignore(5), and git's `dir.c` and `wildmatch.c` where the page is silent:
    * A pattern without a slash (but for one at its end) matches a name at any depth; any other
      one matches the path from the folder of its file. A slash at the end means folders only.
    * `*`, `?` and `[...]` never match a slash; `**` between slashes matches any number of folders.
    * `!` takes back; the last pattern that matches a path decides about it.
    * A pattern that is malformed (an open bracket, an unknown class) matches nothing.

Matching is exact at one path: what a matched folder means for the paths below it is the caller's.
Bytes in, bytes compared: no case folding, no Unicode form. A hostile pattern costs at most
quadratic time: a star never goes back behind the next star of its kind (atomic groups).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_ANY = frozenset(range(256))
_SLASH = ord("/")
_PUNCTUATION = rb"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""
_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGIT = frozenset(b"0123456789")

# ASCII only, whatever the locale, as in git's own tables.
_CLASSES = {
    b"alnum": _LOWER | _UPPER | _DIGIT,
    b"alpha": _LOWER | _UPPER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGIT,
    b"graph": frozenset(range(0x21, 0x7F)),
    b"lower": _LOWER,
    b"print": frozenset(range(0x20, 0x7F)),
    b"punct": frozenset(_PUNCTUATION),
    b"space": frozenset(b" \t\n\r"),
    b"upper": _UPPER,
    b"xdigit": _DIGIT | frozenset(b"abcdefABCDEF"),
}

_STAR, _DEEP, _DEEP_FOLDERS = b"[^/]*", b".*", b"(?:.*/)?"
_LAZY = {_STAR: b"[^/]*?", _DEEP: b".*?", _DEEP_FOLDERS: b"(?:.*?/)??"}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line: what it matches, and what a match means."""

    regex: re.Pattern[bytes]
    takes: bool
    by_name: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """The patterns of one file or one list, last one first."""

    _patterns: tuple[_Pattern, ...]

    def decide(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Return True (matched), False (taken back by `!`) or None (no pattern says anything).

        Args:
            path: relative to the folder the patterns belong to.
            is_folder: a symlink to a folder is none.
        """
        name = path.rsplit(b"/", 1)[-1]
        for pattern in self._patterns:
            if pattern.folders_only and not is_folder:
                continue
            if pattern.regex.fullmatch(name if pattern.by_name else path):
                return pattern.takes
        return None

    def covers(self, path: bytes, *, is_folder: bool) -> bool:
        """Tell whether the path, or else the nearest folder above it, is matched."""
        verdict = self.decide(path, is_folder=is_folder)
        while verdict is None and b"/" in path:
            path = path.rsplit(b"/", 1)[0]
            verdict = self.decide(path, is_folder=True)
        return bool(verdict)

    def __bool__(self) -> bool:
        return bool(self._patterns)


def parse_ignore_file(data: bytes) -> PathPatterns:
    """Read the bytes of a `.gitignore` file; nothing in one is an error."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return _parse_lines(line.removesuffix(b"\r") for line in lines)


def parse_patterns(patterns: Iterable[str]) -> PathPatterns:
    """Read patterns given one by one, as in a recipe."""
    return _parse_lines(pattern.encode("utf-8", "surrogateescape") for pattern in patterns)


def _parse_lines(lines: Iterable[bytes]) -> PathPatterns:
    parsed = (_parse_line(line.split(b"\0", 1)[0]) for line in lines)
    return PathPatterns(tuple(pattern for pattern in parsed if pattern)[::-1])


def _parse_line(line: bytes) -> _Pattern | None:
    if line.startswith(b"#"):
        return None
    text = _trim_spaces(line)
    takes = not text.startswith(b"!")
    text = text if takes else text[1:]
    folders_only = text.endswith(b"/")
    text = text.removesuffix(b"/")
    by_name = b"/" not in text
    regex = _compile(text.removeprefix(b"/"), by_name=by_name) if text else None
    return None if regex is None else _Pattern(regex, takes, by_name, folders_only)


def _trim_spaces(line: bytes) -> bytes:
    """Cut spaces off the end, but for one behind a backslash."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 and bare != line else bare


@lru_cache(maxsize=4096)
def _compile(glob: bytes, *, by_name: bool) -> re.Pattern[bytes] | None:
    tokens = _tokens(glob, by_name=by_name)
    return None if tokens is None else re.compile(_join(tokens), re.DOTALL)


def _tokens(glob: bytes, *, by_name: bool) -> list[bytes] | None:
    """Return stars and the pieces between them as regular expressions; None when malformed."""
    tokens = [b""]
    at, first_wild = 0, True
    while at < len(glob):
        char = glob[at : at + 1]
        if char == b"*":
            star, at = _star(glob, at, by_name=by_name, first_wild=first_wild)
            tokens += [star, b""]
        elif char == b"[":
            found = _bracket(glob, at + 1)
            if found is None:
                return None
            members, at = found
            tokens[-1] += b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]"
        elif char == b"?":
            tokens[-1] += b"[^/]"
            at += 1
        else:
            at += char == b"\\"
            if at == len(glob):
                return None
            tokens[-1] += re.escape(glob[at : at + 1])
            at += 1
        first_wild = first_wild and char not in (b"*", b"[", b"?", b"\\")
    return tokens


def _star(glob: bytes, at: int, *, by_name: bool, first_wild: bool) -> tuple[bytes, int]:
    """Return what a run of stars matches and where the pattern goes on.

    git compares the literal start of a pattern by itself, so `**` right behind it counts as if it
    stood at the start (`a**/b` matches `ab`); the same pattern must mean the same here.
    """
    end = at
    while glob[end : end + 1] == b"*":
        end += 1
    opens = first_wild or glob[at - 1 : at] == b"/"
    if by_name or end - at == 1 or not opens:
        return _STAR, end
    if glob[end : end + 1] == b"/":
        return _DEEP_FOLDERS, end + 1
    if end == len(glob) or glob[end : end + 2] == b"\\/":
        return _DEEP, end
    return _STAR, end


def _join(tokens: list[bytes]) -> bytes:
    """Chain pieces and stars so that only the last star of each kind can be tried twice.

    Leftmost is enough for all others: what a later star of the same kind, or a deep one, could
    match from a later place, it can match from an earlier one.
    """
    pieces, stars = tokens[0::2], tokens[1::2]
    regions, region = [], pieces[0]
    for index, star in enumerate(stars):
        following = stars[index + 1 : index + 2]
        if star == _STAR:
            link = _LAZY[_STAR] + pieces[index + 1]
            region += b"(?>" + link + b")" if following == [_STAR] else link
        else:
            regions.append(b"(?>" + region + b")")
            last = not any(other != _STAR for other in stars[index + 1 :])
            region = (star if last else _LAZY[star]) + pieces[index + 1]
    return b"".join(regions) + region


def _bracket(glob: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """Read a bracket from behind its `[`; return its bytes and where the pattern goes on."""
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous, first = -1, True
    while first or glob[at : at + 1] != b"]":
        first = False
        item = _bracket_item(glob, at, previous)
        if item is None:
            return None
        added, previous, at = item
        members |= added
    members = set(_ANY - members) if negated else members
    members.discard(_SLASH)
    return (frozenset(members), at + 1) if members else None


def _bracket_item(glob: bytes, at: int, previous: int) -> tuple[frozenset[int], int, int] | None:
    """Return the bytes of one item, where a range may start (-1: nowhere), and the next place."""
    char = glob[at : at + 1]
    if char == b"[" and glob[at + 1 : at + 2] == b":":
        close = glob.find(b"]", at + 2)
        if close < 0:
            return None
        if close > at + 2 and glob[close - 1 : close] == b":":
            named = _CLASSES.get(glob[at + 2 : close - 1])
            return None if named is None else (named, -1, close + 1)
    if char == b"-" and previous > 0 and glob[at + 1 : at + 2] not in (b"", b"]"):
        end = _literal(glob, at + 1)
        return None if end is None else (frozenset(range(previous, end[0] + 1)), -1, end[1])
    literal = _literal(glob, at)
    return None if literal is None else (frozenset({literal[0]}), literal[0], literal[1])


def _literal(glob: bytes, at: int) -> tuple[int, int] | None:
    at += glob[at : at + 1] == b"\\"
    return (glob[at], at + 1) if at < len(glob) else None
