"""Writes from the code: commands, errors, man pages, and schemas of what `--json` prints.

Run `python docs/generate_commands.py` after a change of `harness/cli` or `harness/errors.py`; a
test fails until it was done.
"""  # noqa: INP001 - a script beside the pages it writes, not a package

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import click

import harness
from harness.cli.main import COMMANDS, SECTIONS
from harness.cli.main import harness as program
from harness.cli.manual.roff import file_name, render_man
from harness.cli.outputs.kinds import schema_bytes
from harness.cli.outputs.table import ERROR, OUTPUTS, Output, type_of
from harness.errors import HarnessError

REFERENCE = Path(__file__).resolve().parent / "reference"
SCHEMAS = REFERENCE.parent / "schemas" / "output"
MAN = REFERENCE.parent / "man"
WIDTH = 100

_CLI_HEAD = """\
# Commands

Written by `python docs/generate_commands.py`. Each page is also `harness COMMAND --help`.

A hash may be shortened to 12 or more digits to look at something, never to sign, run or apply it.
`--json` prints one JSON value on stdout, an error as JSON on stderr: see [JSON output](json.md).
Without a terminal nothing is asked and nothing moves. [Errors](errors.md) explains the exit codes.
`harness completion SHELL` lets bash, zsh and fish complete all of it, hashes and run ids too.
"""

_JSON_HEAD = """\
# JSON output

Written by `python docs/generate_commands.py`.

Commands that look at something, or end with a result, take `--json`: one JSON value on stdout,
ASCII only, and nothing else there. An error is one JSON object on stderr, and stdout stays empty.
Exit codes are the same with `--json` and without.

- Every object at the top, and every item of a list at the top, has a `_type` that says what it is
  and in which version, as `harness/output/plan/v1`.
- Within a version a member may be added: read what you know, ignore the rest. A member that goes,
  is renamed, or means something else makes a new version, and the changelog says so.
- The schemas are those of this release, and closed: they describe every member there is.
  `harness schema COMMAND` prints the one that the installed program follows.
- Hashes are full, sizes are bytes, times are RFC 3339 in UTC, durations are milliseconds. What is
  absent is an empty text or null, as its schema says. A path that is not UTF-8 is `path_b64`.

A [ledger entry](formats.md) is printed as it is stored, with the `_type` it is hashed under.

| command | prints | `_type` | schema |
|---|---|---|---|
"""

_ERRORS_HEAD = """\
# Errors

Written by `python docs/generate_commands.py`.

An error is one line on stderr, then the places it is about, then a hint. It is classed by who must
act next. With `--json` it is an object `error` with `code`, `message`, `issues` (each `where`,
`message`, `fix`) and `hint`. Codes and exit codes are stable; messages are for people.

A recipe that fails is no error but the outcome of a run: its kinds are in
[formats](formats.md).

## Exit codes

| exit | meaning | who acts |
|---|---|---|
| 0 | passed or done, also when a diff waits | |
| 1 | the recipe failed: exit status, signal, timeout or a limit | author of the recipe |
| 2 | a file, an argument or the command's own words are malformed; nothing was done | author |
| 3 | bytes are not what was promised | security owner |
| 4 | not permitted, or not yet | approver |
| 5 | something tried to leave its box | security owner |
| 6 | engine, image, a needed feature or the state folder is missing; or the run failed around \
the recipe | operator |
| 7 | something from outside could not be had | operator |
| 70 | a fault of harness itself: please report it | us |
| 130 | interrupted | |

## Codes

| code | exit | meaning | hint |
|---|---|---|---|
"""

_OWN = {
    "usage": (2, "The command's own words are malformed.", "`harness COMMAND --help`"),
    "internal": (70, "A fault of harness itself.", "please report it; `HARNESS_DEBUG=1`"),
}
"""Codes without a class of ours, from `harness/cli/errors.py`."""


def error_classes() -> list[type[HarnessError]]:
    """Return every error class of the package that users can meet, by exit code and code."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[HarnessError]] = []
    waiting: list[type[HarnessError]] = [HarnessError]
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found += below
    return sorted(found, key=lambda item: (item.exit_code, item.code))


def all_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command with its full name, groups before what is in them."""
    top = _top()
    for name in COMMANDS:
        command = program.get_command(top, name)
        if command is not None:
            yield from _below(command, name, top)


def render_cli() -> str:
    """Return the page of the commands."""
    helps = {name: (command, context) for name, command, context in all_commands()}
    parts = [_CLI_HEAD]
    for title, listed in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for name in listed:
            for full, (command, context) in helps.items():
                if full.split(" ")[0] == name:
                    text = command.get_help(context).replace("Usage: ", "", 1)
                    parts.append(f"\n### harness {full}\n\n```text\n{text}\n```\n")
    return "".join(parts)


def render_errors() -> str:
    """Return the page of the errors."""
    rows = [
        (item.code, item.exit_code, (inspect.getdoc(item) or "").split("\n")[0], item.hint)
        for item in error_classes()
    ]
    rows += [(code, *rest) for code, rest in _OWN.items()]
    lines = [f"| `{code}` | {exits} | {text} | {hint} |\n" for code, exits, text, hint in rows]
    return _ERRORS_HEAD + "".join(lines)


def render_json() -> str:
    """Return the page of the JSON output."""
    rows = []
    for command in (*OUTPUTS, ERROR):
        output = OUTPUTS.get(command, Output(ERROR))
        name = f"`harness {command}`" if command in OUTPUTS else "any, on stderr"
        what = "a list" if output.many else "an object"
        link = f"[{file_stem(command)}](../schemas/output/{file_stem(command)}.json)"
        rows.append(f"| {name} | {what} | `{type_of(output.kind)}` | {link} |\n")
    return _JSON_HEAD + "".join(rows)


def file_stem(command: str) -> str:
    """Return the name of a command's schema file, without its suffix."""
    return command.replace(" ", "-")


def render_all() -> Iterator[tuple[Path, bytes]]:
    """Yield every generated file with the bytes it should have."""
    yield REFERENCE / "cli.md", render_cli().encode()
    yield REFERENCE / "errors.md", render_errors().encode()
    yield REFERENCE / "json.md", render_json().encode()
    yield MAN / file_name(""), render_man(_top()).encode()
    for name, _, context in all_commands():
        yield MAN / file_name(name), render_man(context).encode()
    for command in (*OUTPUTS, ERROR):
        yield SCHEMAS / f"{file_stem(command)}.json", schema_bytes(command)


def _top() -> click.Context:
    return program.make_context("harness", [], resilient_parsing=True, terminal_width=WIDTH)


def _below(
    command: click.Command, name: str, parent: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=name.rsplit(" ", 1)[-1], parent=parent)
    yield name, command, context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _below(found, f"{name} {below}", context)


if __name__ == "__main__":
    for target, content in render_all():
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
