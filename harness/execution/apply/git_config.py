"""git's configuration files, read as text: host git runs programs that a configuration names.

Only what is needed to learn where hooks lie: the values of a key, in a file and in what it
includes. Conditions of `includeIf` are not judged; every include is followed, which can only find
more. Syntax: git-config(1), "CONFIGURATION FILE".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError

MAX_CONFIG_BYTES = 1 << 20
MAX_INCLUDES = 10

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*(?:"(?:[^"\\]|\\.)*")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def config_values(path: Path, name: str, *, home: str) -> list[str]:
    """Return every value of a key, `core.hookspath` say, in a file and in what it includes.

    Args:
        path: the file; a missing one has no values.
        name: section and key in lower case, with a dot between.
        home: what `~` stands for; empty when there is none.

    Raises:
        StateError: a file is there but can't be read, or is larger than any real one.
    """
    return list(_values(path, name, home, MAX_INCLUDES))


def expand_home(text: str, home: str) -> str:
    """Return a path of a configuration with a leading `~/` filled in."""
    return os.path.join(home, text[2:]) if home and text.startswith("~/") else text  # noqa: PTH118 - text of a configuration, not yet a path


def _values(path: Path, name: str, home: str, includes_left: int) -> Iterator[str]:
    for section, key, value in parse_config(_read(path)):
        if f"{section}.{key}" == name:
            yield value
        if key == "path" and section in ("include", "includeif") and includes_left:
            included = path.parent / expand_home(value, home)
            yield from _values(included, name, home, includes_left - 1)


def parse_config(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each setting; section and key in lower case."""
    section = ""
    for line in _logical_lines(text):
        rest = line.strip()
        if match := _SECTION.match(rest):
            section = match[1].lower()
            rest = rest[match.end() :].strip()
        if match := _KEY.match(rest):
            yield section, match[1].lower(), _parse_value(match[2] or "")


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in a backslash that is not itself escaped."""
    held = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        body = line.rstrip("\\")
        if (len(line) - len(body)) % 2:
            held += line[:-1]
        else:
            yield held + line
            held = ""
    if held:
        yield held


def _parse_value(text: str) -> str:
    found: list[str] = []
    quoted = escaped = False
    kept = 0  # blanks at the end count only inside quotes
    for character in text:
        if escaped:
            found.append(_ESCAPES.get(character, character))
            escaped, kept = False, len(found)
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
            kept = len(found)
        elif character in "#;" and not quoted:
            break
        else:
            found.append(character)
            if quoted or not character.isspace():
                kept = len(found)
    return "".join(found[:kept])


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise StateError(
            f"git configuration {path.name}: {error.strerror}",
            hint="it may say where hooks lie; make it readable",
        ) from error
    if len(data) > MAX_CONFIG_BYTES:
        raise StateError(
            f"git configuration {path.name}: expected at most {MAX_CONFIG_BYTES} bytes"
        )
    return data.decode("utf-8", "surrogateescape")
