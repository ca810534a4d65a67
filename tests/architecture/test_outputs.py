"""Every JSON that a command prints has a published schema, complete and closed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from harness.cli.main import COMMANDS, harness
from harness.cli.outputs.kinds import KINDS, schema_of_command
from harness.cli.outputs.table import ERROR, OUTPUTS, named, type_of
from tests.architecture.source import ROOT

NAMES = (*OUTPUTS, ERROR)
FREE = {"body", "notes"}
"""Members that hold what another schema, or nobody, describes: those of a ledger entry."""


def speaking() -> Iterator[str]:
    """Yield every command that has --json."""
    top = harness.make_context("harness", [], resilient_parsing=True)
    waiting = [(name, harness.get_command(top, name)) for name in COMMANDS]
    while waiting:
        name, command = waiting.pop()
        if isinstance(command, click.Group):
            waiting += [(f"{name} {below}", item) for below, item in command.commands.items()]
        elif command is not None and any("--json" in item.opts for item in command.params):
            yield name


def test_every_command_with_json_has_a_kind_and_every_kind_is_printed() -> None:
    assert sorted(OUTPUTS) == sorted(speaking())
    assert {output.kind for output in OUTPUTS.values()} | {ERROR} == set(KINDS)


def test_an_output_without_a_kind_is_a_fault() -> None:
    with pytest.raises(RuntimeError, match=r"^no such command: has --json and no kind"):
        named("no such command", {})


def parts(schema: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a schema and every schema in it, with its place."""
    yield where, schema
    for name, member in schema.get("properties", {}).items():
        yield from parts(member, f"{where}/{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping) and schema[word]:
            yield from parts(schema[word], f"{where}/{word}")
    for word in ("anyOf", "oneOf"):
        for number, form in enumerate(schema.get(word, ())):
            if "type" in form or "properties" in form:
                yield from parts(form, f"{where}/{word}{number}")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_complete_and_closed(name: str) -> None:
    schema = schema_of_command(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    for where, part in parts(schema):
        if part.get("type") == "object" and where.rpartition("/")[2] not in FREE:
            assert "additionalProperties" in part, where
        if "/anyOf" not in where and part is not schema:
            assert part.get("description"), where


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_refuses_a_member_that_nobody_described(name: str) -> None:
    schema = schema_of_command(name)
    forms = schema.get("items", schema)
    for form in forms.get("oneOf", [forms]) if "properties" not in forms else [forms]:
        assert form["additionalProperties"] is False
        assert form["properties"]["_type"]["const"].startswith("harness/")
        assert form["required"][0] == "_type"


@pytest.mark.parametrize("name", NAMES)
def test_the_command_prints_the_published_schema(name: str) -> None:
    published = (
        ROOT / "docs" / "schemas" / "output" / f"{name.replace(' ', '-')}.json"
    ).read_text()
    assert CliRunner().invoke(harness, ["schema", *name.split()]).stdout == published
    assert json.loads(published)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_nothing_else_is_published() -> None:
    folder = ROOT / "docs" / "schemas" / "output"
    assert sorted(path.stem.replace("-", " ") for path in folder.iterdir()) == sorted(NAMES)


def test_each_object_says_what_it_is_and_in_which_version() -> None:
    assert named("runs list", [{"run": "x"}]) == [{"_type": type_of("run"), "run": "x"}]
    assert named("plan show", {"plan": "x"}) == {"_type": type_of("plan"), "plan": "x"}
    assert type_of("plan") == "harness/output/plan/v1"
