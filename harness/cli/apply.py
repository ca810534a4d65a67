"""`harness apply` and `harness undo`: land an approved diff, or prepare to take one back."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.amounts import count
from harness.cli.begin import begin
from harness.cli.command import Command
from harness.cli.offer import offer
from harness.cli.options import json_option, key_words, print_json, project_option
from harness.cli.progress import working
from harness.cli.show_diff import diff_json, print_stat
from harness.flows.apply import apply_diff, undo_diff
from harness.model.digest import parse_given_digest


@click.command(cls=Command)
@click.argument("diffhash", shell_complete=offer("diffs"))
@project_option
@json_option
def apply(diffhash: str, project: Path, *, as_json: bool) -> None:
    """Land an approved diff, all of it or nothing.

    DIFFHASH is the full diff hash. Every path it touches must be as it was when the run was sealed;
    otherwise nothing is written and the exit code is 3.
    """
    digest = parse_given_digest(diffhash)
    session = begin(project)
    with working("applying", quiet=as_json):
        applied = apply_diff(session, digest)
    changes = len(applied.changeset.changes)
    if as_json:
        print_json({"diff": applied.diff, "changes": changes, "result": applied.changeset.result})
    elif changes:
        click.secho(f"applied: {count(changes, 'changed path')}", fg="green")
        click.echo(f"to take it back: harness undo {applied.diff}")
    else:
        click.echo("the diff is empty: nothing was written")


@click.command(cls=Command)
@click.argument("diffhash", shell_complete=offer("landed diffs"))
@project_option
@json_option
def undo(diffhash: str, project: Path, *, as_json: bool) -> None:
    """Make the reverse of a landed diff, to be approved itself.

    DIFFHASH is the full hash of the diff that landed. The reverse waits in quarantine like any
    other diff.
    """
    digest = parse_given_digest(diffhash)
    session = begin(project)
    quarantine = undo_diff(session, digest)
    if as_json:
        print_json(diff_json(session, quarantine, patch=False))
        return
    print_stat(quarantine)
    click.echo(f"next: harness approve {quarantine.summary.diff}{key_words()}")
