"""`harness diff`: what a run changed, waiting in quarantine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.offer import offer
from harness.cli.options import json_option, print_json, project_option
from harness.cli.show_diff import diff_json, print_diff
from harness.errors import InputError
from harness.flows.lookup import find_quarantined
from harness.flows.quarantined import load_quarantine, render_quarantine
from harness.flows.session import open_session


@click.command(cls=Command)
@click.argument("run", metavar="RUN", shell_complete=offer("runs", "diffs"))
@click.option("--stat", is_flag=True, help="The changed paths only.")
@click.option("--patch", is_flag=True, help="The patch only, byte for byte, for `git apply`.")
@project_option
@json_option
def diff(run: str, project: Path, *, stat: bool, patch: bool, as_json: bool) -> None:
    """Show what a run changed, waiting in quarantine.

    RUN is a run id, or 12 or more digits of a diff hash. Nothing shown here has touched the
    project. Control characters and hidden ones are escaped, except with --patch.
    """
    if stat and patch:
        raise InputError("--stat and --patch: expected one of them")
    session = open_session(project)
    entries = session.ledger.entries()
    quarantine = load_quarantine(session, find_quarantined(entries, session.project.id, run))
    if as_json:
        print_json(diff_json(session, quarantine, patch=patch))
    elif patch:
        sys.stdout.buffer.write(render_quarantine(session, quarantine))
    else:
        print_diff(session, quarantine, patch=not stat)
