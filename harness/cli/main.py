"""The table of commands, and the one place where an error becomes text and an exit code.

A command's module is imported when the command is used, so `--help` and `--version` stay quick.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from harness import __version__
from harness.cli.errors import render_error, render_unexpected, render_usage
from harness.cli.streams import let_reader_go, send_nowhere
from harness.errors import HarnessError

INTERRUPTED = 130
USAGE = 2
INTERNAL = 70
"""EX_SOFTWARE of sysexits.h: a fault of ours."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One command as `--help` shows it.

    Attributes:
        module: name of its module below `harness.cli`.
        help: one line; a test holds it against the command's own.
    """

    module: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Listed]] = {
    "Start here": {
        "setup": Listed("setup", "Find or start a Docker Engine for sealed workers."),
        "init": Listed("project", "Write a commented starter set of recipes and policies."),
        "demo": Listed("demo", "Do the whole job once on a real upstream project."),
    },
    "The main job, in order": {
        "recipe": Listed("project", "List, show and check recipes."),
        "seal": Listed("plan", "Freeze recipes, files, images and policy into one plan hash."),
        "plan": Listed("plan", "List plans, or show what one would run."),
        "approve": Listed("approve", "Sign a plan hash or a diff hash with your SSH key."),
        "reject": Listed("approve", "Sign that a plan or a diff must not go on."),
        "run": Listed("run", "Run an approved plan in an offline worker."),
        "diff": Listed("diff", "Show what a run changed, waiting in quarantine."),
        "apply": Listed("apply", "Land an approved diff, all of it or nothing."),
        "undo": Listed("apply", "Make the reverse of a landed diff, to be approved itself."),
    },
    "Look": {
        "runs": Listed("runs", "List runs, show one, print or follow its logs, end it."),
        "artifacts": Listed("artifacts", "List the files that a run left on purpose, and get one."),
        "ledger": Listed("ledger", "List, show and verify the append-only ledger."),
        "image": Listed("image", "Build, add, list and verify worker images."),
    },
    "Keep": {
        "project": Listed("projects", "List projects, move one, add one."),
        "key": Listed("key", "Show, rotate and renew the key that signs the ledger."),
        "state": Listed("state", "Back up the state of this host, and restore it."),
    },
    "Around it": {
        "help": Listed("help", "Print a command's page of the manual."),
        "schema": Listed("schema", "Print the JSON Schema of a file, or of what a command prints."),
        "completion": Listed(
            "completion", "Print the script that completes commands in your shell."
        ),
    },
}

COMMANDS: Mapping[str, Listed] = {
    name: listed for section in SECTIONS.values() for name, listed in section.items()
}


class CommandTable(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            return None
        module = importlib.import_module(f"harness.cli.{listed.module}")
        command = getattr(module, cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"harness.cli.{listed.module}.{cmd_name} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one was probably meant."""
        name = args[0] if args else ""
        if name not in COMMANDS:
            import difflib  # noqa: PLC0415 - only for a mistyped name

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"no command {name!r:.60}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        del ctx
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, listed.help) for name, listed in commands.items()])


@click.command(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 passed or done, 1 the recipe failed, 2 input, 3 verification, "
    "4 approval, 5 containment, 6 engine or state, 7 acquisition, 130 interrupted.",
)
@click.version_option(__version__, prog_name="harness", message="%(prog)s %(version)s")
def harness() -> None:
    """Run recipes over real code in sealed, offline workers.

    What was reviewed is what ran, and what was approved is what landed.
    """


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command; turn every error into text on stderr and an exit code.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code.
    """
    question = os.environ.get("_HARNESS_COMPLETE")
    if question:
        from harness.cli.completion import answer_shell  # noqa: PLC0415 - only when a shell asks

        return answer_shell(harness, question)
    try:
        result = harness.main(list(arguments), prog_name="harness", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit:
        # click's own way out when the reader of our output left; its code would say `failed`.
        let_reader_go()
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - no traceback reaches a user
        return _explain(error, as_json="--json" in arguments)
    return result if isinstance(result, int) else 0


def _explain(error: BaseException, *, as_json: bool) -> int:
    """Write an error to stderr and return its exit code."""
    try:
        _render(error, as_json=as_json)
    except OSError:  # stderr can't be written; the code still speaks
        send_nowhere(2)
    match error:
        case click.exceptions.Exit() | HarnessError():
            return error.exit_code
        case click.ClickException():
            return USAGE
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            let_reader_go()
            return 0
        case _:
            return INTERNAL


def _render(error: BaseException, *, as_json: bool) -> None:
    match error:
        case click.exceptions.Exit() | BrokenPipeError():
            pass
        case click.ClickException():
            render_usage(error, as_json=as_json)
        case HarnessError():
            render_error(error, as_json=as_json)
        case KeyboardInterrupt() | click.Abort():
            click.echo("interrupted", err=True)
        case _:
            render_unexpected(error, as_json=as_json)
