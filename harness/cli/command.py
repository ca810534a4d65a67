"""Commands whose `--help` is their page of the manual: `@click.command(cls=Command)`."""

from __future__ import annotations

import click


class _Manual(click.Command):
    """Writes the manual's sections around those that click writes."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options and, for a group, its commands."""
        from harness.cli.manual.sections import arguments_of  # noqa: PLC0415 - only for help

        rows = arguments_of(words_of(ctx))
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write exit codes, environment, files, examples and where to look next."""
        from harness.cli.manual import sections  # noqa: PLC0415 - only for help

        command = words_of(ctx)
        for title, rows in sections.sections_of(command):
            with formatter.section(title):
                formatter.write_dl(rows)
        examples = sections.examples_of(command)
        if examples:
            with formatter.section("Examples"):
                for about, line in examples:
                    formatter.write_text(f"{about}:")
                    formatter.write(f"{'':{formatter.current_indent}}  {line}\n")
        related = sections.related_to(command)
        if related:
            with formatter.section("See also"):
                formatter.write_text(", ".join(related))


class Command(_Manual):
    """A command with a page."""


class Group(_Manual, click.Group):
    """A group with a page; its commands have pages too."""

    command_class = Command


def words_of(context: click.Context) -> str:
    """Return a command's own words: without the program's name."""
    return context.command_path.partition(" ")[2]
