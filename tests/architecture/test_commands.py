"""The command table, the commands' own help, the errors, and the pages that are made of them."""

from __future__ import annotations

import importlib.util
import inspect
from types import ModuleType

import click
import pytest

from harness.cli.main import COMMANDS, harness
from harness.errors import HarnessError
from tests.architecture.source import ROOT

SPOKEN = (2, 3, 4, 5, 6, 7)
"""Exit codes an error may have; the design names their meaning."""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "docs" / "generate_commands.py"
    spec = importlib.util.spec_from_file_location("generate_commands", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_those_of_the_code(generator: ModuleType) -> None:
    for path, content in generator.render_all():
        assert path.read_bytes() == content, f"run python docs/generate_commands.py: {path.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = harness.commands.get(name) or harness.get_command(click.Context(harness), name)
    assert command is not None
    assert (command.help or "").split("\n")[0] == COMMANDS[name].help


def test_every_command_and_option_has_help(generator: ModuleType) -> None:
    silent = []
    for name, command, _ in generator.all_commands():
        if not command.help:
            silent.append(name)
        silent += [
            f"{name} {parameter.opts[0]}"
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.help
        ]
    assert silent == []


def test_every_command_that_reads_speaks_json(generator: ModuleType) -> None:
    """The exceptions print bytes, pages, schemas or scripts as they are, and the demonstration."""
    mute = [
        name
        for name, command, _ in generator.all_commands()
        if not isinstance(command, click.Group)
        and not any("--json" in parameter.opts for parameter in command.params)
    ]
    bytes_only = ["runs logs", "artifacts get", "ledger object"]
    assert mute == ["demo", *bytes_only, "help", "schema", "completion"]


def test_every_error_has_a_code_of_its_own_an_exit_code_and_a_hint(generator: ModuleType) -> None:
    classes: list[type[HarnessError]] = generator.error_classes()
    codes = [item.code for item in classes]
    assert len(set(codes)) == len(codes) == len({item.__name__ for item in classes})
    for item in classes:
        assert item.exit_code in SPOKEN, item
        assert item.hint, item
        assert item.__name__.endswith("Error"), item
        assert (inspect.getdoc(item) or "").split("\n")[0].endswith("."), item


def test_every_error_is_in_the_reference(generator: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    for item in generator.error_classes():
        assert f"| `{item.code}` | {item.exit_code} |" in page


def test_an_error_of_one_class_never_becomes_another_by_inheritance(
    generator: ModuleType,
) -> None:
    """A subclass exits as its class: who must act does not change with the detail."""
    for item in generator.error_classes():
        base = item.__mro__[1]
        assert base is HarnessError or base.exit_code == item.exit_code
