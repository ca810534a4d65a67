"""Every command has its page of the manual, which is its help and its man page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from harness.cli.command import Command, Group
from harness.cli.main import COMMANDS, harness
from harness.cli.manual.page import ENVIRONMENT, FILES
from harness.cli.manual.pages import PAGES
from harness.cli.manual.roff import render_man
from tests.architecture.source import ROOT

_WORDS = re.compile(r"[A-Z][A-Z_]+|\{[a-z|]+\}")


def contexts() -> Iterator[click.Context]:
    """Yield a context of every command."""
    top = harness.make_context("harness", [], resilient_parsing=True)
    waiting = [(top, name) for name in reversed(list(COMMANDS))]
    while waiting:
        above, name = waiting.pop()
        group = above.command
        assert isinstance(group, click.Group)
        command = group.get_command(above, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=above)
        yield context
        if isinstance(command, click.Group):
            waiting += [(context, below) for below in reversed(command.list_commands(context))]


CONTEXTS = {context.command_path.removeprefix("harness "): context for context in contexts()}


def test_there_is_a_page_for_every_command_and_no_other() -> None:
    assert sorted(PAGES) == sorted(["", *CONTEXTS])  # the empty one is the program's own


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_page_is_complete(name: str) -> None:
    page, context = PAGES[name], CONTEXTS[name]
    assert isinstance(context.command, Group | Command), f"{name}: click.command(cls=Command)"
    usage = [
        parameter.make_metavar(context)
        for parameter in context.command.params
        if isinstance(parameter, click.Argument)
    ]
    words = {word for metavar in usage for word in _WORDS.findall(metavar)}
    assert {word for term in page.arguments for word in _WORDS.findall(term)} == words
    assert page.examples
    assert page.see
    assert set(page.see) <= set(PAGES) - {name}
    assert set(page.environment) <= set(ENVIRONMENT)
    assert set(page.files) <= set(FILES)
    for text in (*page.arguments.values(), *page.exits.values()):
        assert text.endswith((".", "]")), text


@pytest.mark.parametrize("name", CONTEXTS)
def test_help_is_the_page(name: str) -> None:
    text = CONTEXTS[name].get_help()
    for title in ("Exit codes:", "Environment:", "Examples:", "See also:"):
        assert f"\n{title}\n" in text
    for _, line in PAGES[name].examples:
        assert f"\n    {line}\n" in text


def test_every_variable_and_file_of_the_manual_is_used() -> None:
    pages = [page for name, page in PAGES.items() if name]
    assert {name for page in pages for name in page.environment} | {"HARNESS_DEBUG"} == set(
        ENVIRONMENT
    )
    assert {name for page in pages for name in page.files} == set(FILES)


def test_every_variable_that_a_command_reads_is_in_the_source() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "harness").rglob("*.py"))
    for name in ENVIRONMENT:
        assert source.count(f'"{name}"') > 1, name


def test_the_programs_own_man_page_lists_its_commands() -> None:
    top = harness.make_context("harness", [], resilient_parsing=True)
    page = render_man(top)
    assert all(f"\\fB{name}\\fR" in page for name in COMMANDS)
    for title in ("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"):
        assert f"\n.SH {title}\n" in page


def test_a_line_that_begins_as_a_roff_request_is_text() -> None:
    @click.command(help="Read\n.so /etc/passwd\n'so x\\(aq")
    def evil() -> None: ...

    page = render_man(click.Context(evil, info_name="evil"))
    assert "\n.so" not in page
    assert "\n'" not in page
    assert "x\\e(aq" in page
