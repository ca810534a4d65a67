"""`harness help`: the page of a command, for who types `help` before the command."""

from __future__ import annotations

import click

from harness.cli.command import Command


@click.command(cls=Command)
@click.argument("command", nargs=-1)
@click.pass_context
def help(context: click.Context, command: tuple[str, ...]) -> None:  # noqa: A001 - its name
    """Print a command's page of the manual.

    The same as `harness COMMAND --help`; where the package is installed, `man harness-COMMAND` too.
    """
    program = context.find_root().command
    program.main([*command, "--help"], prog_name="harness", standalone_mode=False)
