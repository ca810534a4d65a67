"""`harness schema`: the JSON Schemas of the files people write and of what `--json` prints."""

from __future__ import annotations

import difflib

import click

from harness.cli.command import Command
from harness.cli.outputs.kinds import schema_bytes
from harness.cli.outputs.table import ERROR, OUTPUTS
from harness.errors import InputError
from harness.model.files.file_schemas import SCHEMAS
from harness.model.files.file_schemas import schema_bytes as file_schema_bytes

_NAMES = (*SCHEMAS, *OUTPUTS, ERROR)


@click.command(cls=Command)
@click.argument("name", nargs=-1)
def schema(name: tuple[str, ...]) -> None:
    """Print the JSON Schema of a file, or of what a command prints.

    NAME is a kind of file (recipe, policy, project, host), a command that has --json as
    `runs list`, or `error` for what every command prints on stderr with --json. Without NAME
    the names are listed, one a line.
    """
    wanted = " ".join(name)
    if not wanted:
        for known in _NAMES:
            click.echo(known)
    elif wanted in SCHEMAS:
        click.echo(file_schema_bytes(wanted), nl=False)
    elif wanted in _NAMES:
        click.echo(schema_bytes(wanted), nl=False)
    else:
        near = difflib.get_close_matches(wanted, _NAMES, n=1)
        raise InputError(
            f"schema: {wanted!r:.80} is neither a kind of file nor a command with --json",
            hint=f"did you mean {near[0]!r}?" if near else "`harness schema` lists the names",
        )
