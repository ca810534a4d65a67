"""A command's page as a man page: man(7) source, in the order of man-pages(7).

The shipped pages in `docs/man` are written from it; `harness help --man` prints one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click

from harness import __version__
from harness.cli.command import words_of
from harness.cli.manual.sections import arguments_of, examples_of, related_to, sections_of

_WIDTH = 72
_TITLES = {"Exit codes": "EXIT STATUS"}


def file_name(command: str) -> str:
    """Return the page's file name: `harness-runs-list.1`."""
    return f"{_page_name(command)}.1"


def render_man(context: click.Context) -> str:
    """Return the man page of a context's command."""
    command, found = words_of(context), context.command
    name = _page_name(command)
    lines = [
        f'.TH {name.upper()} 1 "" "Sealed Harness {__version__}" "Sealed Harness"',
        ".SH NAME",
        rf"{name} \- {_escape(_first_line(found))}",
        ".SH SYNOPSIS",
        rf"\fB{_escape(context.command_path)}\fR {_escape(_usage(found, context))}",
        ".SH DESCRIPTION",
        *_paragraphs(found.help or ""),
        *_section("ARGUMENTS", arguments_of(command)),
        *_section("OPTIONS", _options(found, context)),
    ]
    if isinstance(found, click.Group):
        lines += _section("COMMANDS", _commands(found, context))
    for title, rows in sections_of(command):
        lines += _section(_TITLES.get(title, title.upper()), rows)
    lines += _examples(examples_of(command))
    lines += _see_also(command)
    return "\n".join(lines) + "\n"


def _page_name(command: str) -> str:
    return "-".join(["harness", *command.split()])


def _escape(text: str) -> str:
    """Return text as roff prints it: no escape, no request, hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _first_line(command: click.Command) -> str:
    return (command.help or "").split("\n")[0].rstrip(".")


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join(command.collect_usage_pieces(context))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        yield from _filled(paragraph)


def _filled(text: str) -> list[str]:
    words = " ".join(text.split())
    return [_escape(line) for line in textwrap.wrap(words, _WIDTH, break_on_hyphens=False)]


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    lines = [f".SH {title}"]
    for term, text in rows:
        lines += [".TP", rf"\fB{_escape(term)}\fR", *_filled(text)]
    return lines


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    records = [option.get_help_record(context) for option in command.get_params(context)]
    return [record for record in records if record is not None]


def _commands(group: click.Group, context: click.Context) -> list[tuple[str, str]]:
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [(name, _first_line(item) + ".") for name, item in found if item is not None]


def _examples(examples: Sequence[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for about, line in examples:
        lines += [
            ".PP" if lines else ".SH EXAMPLES",
            f"{_escape(about)}:",
            ".PP",
            ".in +4n",
            ".nf",
            _escape(line),
            ".fi",
            ".in",
        ]
    return lines


def _see_also(command: str) -> list[str]:
    names = {name.replace(" ", "-") for name in related_to(command)}
    if command:
        names.add("harness")
    pages = ",\n".join(rf"\fB{_escape(name)}\fR(1)" for name in sorted(names))
    return [".SH SEE ALSO", pages] if names else []
