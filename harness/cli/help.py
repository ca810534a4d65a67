"""`harness help`: the page of a command, for who types `help` before the command."""

from __future__ import annotations

import click

from harness.cli.command import Command


@click.command(cls=Command)
@click.argument("command", nargs=-1)
@click.option("--man", is_flag=True, help="As source for man: `harness help --man run | man -l -`.")
@click.pass_context
def help(context: click.Context, command: tuple[str, ...], *, man: bool) -> None:  # noqa: A001 - its name
    """Print a command's page of the manual.

    The same as `harness COMMAND --help`; where the package is installed, `man harness-COMMAND` too.
    """
    found = _context_of(context.find_root(), command)
    if man:
        from harness.cli.manual.roff import render_man  # noqa: PLC0415 - rarely asked for

        click.echo(render_man(found), nl=False)
    else:
        click.echo(found.get_help())


def _context_of(top: click.Context, words: tuple[str, ...]) -> click.Context:
    """Return the context in which a command's help reads as if it had been asked itself.

    Raises:
        UsageError: there is no such command.
    """
    context = top
    for word in words:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.command_path} has no commands, got {word!r:.60}", top)
        name, command, _ = group.resolve_command(context, [word])
        if command is None:
            raise click.UsageError(f"no command {word!r:.60}", context)
        context = command.context_class(
            command, info_name=name, parent=context, **command.context_settings
        )
    return context
