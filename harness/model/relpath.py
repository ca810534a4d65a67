"""Paths inside a tree: bytes, relative, no tricks.

A path is `bytes` with `/` between names. It is what the kernel knows; text is only a view.
JSON carries it as `path` when it is UTF-8 and as `path_b64` otherwise, never both.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Mapping
from typing import Any

from harness.errors import InputError

MAX_NAME = 255
MAX_PATH = 4095
MAX_DEPTH = 256
"""Most names in one path; far beyond real trees, and safe for code that recurses by folder."""

STAGE_PREFIX = b".harness-apply-"
"""How the name of an apply's staging folder begins; such a name is never part of a tree."""

# Names that git resolves to `.git` on some file system: HFS+ ignores these code points, NTFS has
# the short name git~1 and ignores trailing dots and spaces (CVE-2014-9390, CVE-2019-1352).
_IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)


def parse_path(path: bytes) -> bytes:
    """Check a path: relative, no empty, `.` or `..` name, no NUL, within bounds.

    Raises:
        InputError: the path is not of this form.
    """
    if not path or len(path) > MAX_PATH:
        raise InputError(f"path: expected 1 to {MAX_PATH} bytes, got {len(path)}")
    names = path.split(b"/")
    if len(names) > MAX_DEPTH:
        raise InputError(f"path: expected at most {MAX_DEPTH} names, got {len(names)}")
    for name in names:
        parse_name(name)
    return path


def parse_name(name: bytes) -> bytes:
    """Check one name of a path.

    Raises:
        InputError: empty, `.`, `..`, too long, or with a slash or NUL.
    """
    if not name or name in (b".", b"..") or len(name) > MAX_NAME:
        raise InputError(f"path: {show(name)!r} is not a name inside a tree")
    if b"/" in name or b"\0" in name:
        raise InputError(f"path: {show(name)!r} holds a slash or a NUL byte")
    return name


def is_git_name(name: bytes) -> bool:
    """Tell whether git, on any file system, could take the name for `.git`."""
    text = name.decode("utf-8", "surrogateescape").translate(_IGNORED_BY_HFS).casefold()
    text = text.split(":", 1)[0].rstrip(" .")
    return text in (".git", "git~1") or unicodedata.normalize("NFKC", text) == ".git"


def touches_git(path: bytes) -> bool:
    """Tell whether a path is at or below anything git could take for `.git`."""
    return any(is_git_name(name) for name in path.split(b"/"))


def fold(path: bytes) -> str:
    """Return the form under which two names are one on case- or form-insensitive systems."""
    text = path.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def link_escapes(path: bytes, target: bytes) -> bool:
    """Tell whether a symlink at `path` with text `target` points outside the tree (lexically)."""
    if not target or target.startswith(b"/") or b"\0" in target:
        return True
    depth = path.count(b"/")
    for name in target.split(b"/"):
        if name == b"..":
            depth -= 1
        elif name not in (b"", b"."):
            depth += 1
        if depth < 0:
            return True
    return False


def path_to_json(path: bytes, key: str = "path") -> dict[str, str]:
    """Return `{key: text}` for UTF-8 and `{key_b64: base64}` otherwise."""
    try:
        return {key: path.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{key}_b64": base64.b64encode(path).decode("ascii")}


def path_from_json(item: Mapping[str, Any], key: str = "path") -> bytes:
    """Read what `path_to_json` wrote.

    Raises:
        InputError: both or neither member, bad base64, or base64 where text would do.
    """
    text, coded = item.get(key), item.get(f"{key}_b64")
    if isinstance(text, str) and coded is None:
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(f"{key}: lone surrogate in {text!r:.80}") from error
    if text is None and isinstance(coded, str):
        try:
            raw = base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError(f"{key}_b64: not base64") from error
        if path_to_json(raw, key) == {f"{key}_b64": coded}:
            return raw
    raise InputError(f"{key}: expected one of {key} and {key}_b64, in its one spelling")


def show(path: bytes) -> str:
    r"""Return a path for people: UTF-8 kept, everything else and all controls as `\xNN`."""
    text = path.decode("utf-8", "surrogateescape")
    return "".join(_show_character(character) for character in text)


def _show_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - how surrogateescape carries a raw byte
        return f"\\x{code - 0xDC00:02x}"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
