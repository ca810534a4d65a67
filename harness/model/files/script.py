"""Which commands are scripts: source text in the argv, or a shell that reads some.

A script can do anything without another line of the recipe saying so; it needs a policy's switch.

Rules:
    * A shell as the program is a script, whatever its arguments.
    * An interpreter is a script when it gets source inline (`python -c`, `perl -ne`, `node -e`),
      and awk when its program is not in a file.
    * A program that starts another (`env`, `timeout`, `xargs`) is a script when anything after it
      would be one, or when it takes a command line as one text (`env -S`, `watch`).
    * In doubt it is a script: a refusal names the policy's switch, a miss would name nothing.

Programs go by the last part of their path, without a version: `/usr/bin/python3.11` is python.
This is about what a reader of the recipe can see. A program is free to start a shell of its own;
what holds it then is the worker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.files.script_programs import (
    INTERPRETERS,
    LINE_OPTIONS,
    LINE_TAKERS,
    SHELLS,
    STARTERS,
    Interpreter,
)

_LONGEST_NAME = 255
_VERSION = re.compile(r"(?:[-.]?[0-9][0-9.]*)?(?:\.exe)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What makes a command a script.

    Attributes:
        reason: for people, as `shell sh` or `inline source for python`.
        sources: positions in the argv that hold source text.
    """

    reason: str
    sources: frozenset[int]


def find_script(argv: Sequence[str]) -> Script | None:
    """Tell whether a command is a script, by what its argv shows.

    Args:
        argv: program and arguments.
    """
    if not argv:
        return None
    found = _find_here(argv, 0)
    program = _program(argv[0])
    if found or program not in STARTERS:
        return found
    for start in range(1, len(argv)):
        found = _find_here(argv, start)
        if found:
            return Script(reason=f"{found.reason}, started by {program}", sources=found.sources)
    return None


def _find_here(argv: Sequence[str], start: int) -> Script | None:
    """Tell whether the command that starts at one position is a script itself."""
    program = _program(argv[start])
    if program in SHELLS:
        return Script(reason=f"shell {program}", sources=_shell_sources(argv, start))
    if program in LINE_TAKERS:
        sources = frozenset(range(start + 1, len(argv)))
        return Script(reason=f"command line for {program}", sources=sources)
    if program in INTERPRETERS:
        sources = _inline_sources(INTERPRETERS[program], argv, start)
        return Script(reason=f"inline source for {program}", sources=sources) if sources else None
    if program in LINE_OPTIONS:
        for index in range(start + 1, len(argv)):
            if _gives(argv[index], *LINE_OPTIONS[program]):
                sources = frozenset(range(index, len(argv)))
                return Script(reason=f"command line for {program}", sources=sources)
            if _program(argv[index]) == program:
                break  # the same program again: its turn comes, and the work stays linear
    return None


def _program(path: str) -> str:
    name = path.rsplit("/", 1)[-1][:_LONGEST_NAME].lower()
    return _VERSION.sub("", name, count=1) or name


def _gives(item: str, letter: str, word: str) -> bool:
    """Tell whether an item is an option, alone, in a cluster, shortened, or with its value."""
    if item.startswith("--"):
        name = item.partition("=")[0]
        return len(name) > len("--") and word.startswith(name)
    return item.startswith("-") and letter in item


def _shell_sources(argv: Sequence[str], start: int) -> frozenset[int]:
    """Return where the source of `sh -c` stands: the first item after it that is no option."""
    flags: set[int] = set()
    is_value = False
    for index in range(start + 1, len(argv)):
        item = argv[index]
        if is_value:
            is_value = False
        elif item[:1] in ("-", "+") and len(item) > 1:
            if _gives(item, "c", "--command") or _gives(item, "C", "--command"):
                flags.add(index)  # some shells take the source in the same item
            is_value = item[-1] in "oO" and not item.startswith("--")
        else:
            return frozenset({*flags, index}) if flags else frozenset()
    return frozenset(flags)


def _inline_sources(interpreter: Interpreter, argv: Sequence[str], start: int) -> frozenset[int]:
    """Return the positions of inline source among an interpreter's own options."""
    found: set[int] = set()
    index, last = start + 1, len(argv) - 1
    maybe_value = False
    while index <= last:
        item = argv[index]
        if item.startswith("--") or item in interpreter.long:
            word, has_value, _ = item.partition("=")
            step = 0 if has_value else 1
            if word in interpreter.long:
                found.add(min(index + step, last))
                index += step
            # any long option may have a value of its own; what follows is still the interpreter's
            maybe_value = not has_value and item != "--"
        elif item.startswith("-") and len(item) > 1:
            step, is_source, ends = _read_cluster(interpreter, item)
            if is_source:
                found.add(min(index + step, last))
            if ends:
                break
            index += step
            maybe_value = False
        elif maybe_value:
            maybe_value = False
        else:
            if interpreter.bare and not found:
                found.add(index)
            break
        index += 1
    return frozenset(found)


def _read_cluster(interpreter: Interpreter, item: str) -> tuple[int, bool, bool]:
    """Read `-Ic`: how many items on its value lies, whether that is source, whether it ends."""
    for position, letter in enumerate(item[1:], start=2):
        rest = 0 if position < len(item) else 1
        if letter in interpreter.source:
            return rest, True, False
        if letter in interpreter.value:
            return rest, False, False
        if letter in interpreter.ends:
            return 0, False, True
    return 0, False, False
