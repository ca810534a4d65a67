"""`harness runs`: look at runs."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import click

from harness.cli.options import json_option, print_json, project_option
from harness.cli.plain import PlainStream, plain
from harness.cli.show_run import print_record, record_json
from harness.flows.history import find_run, list_runs
from harness.flows.records import load_record
from harness.flows.session import open_session
from harness.model.clock import show_duration
from harness.model.digest import short


@click.group()
def runs() -> None:
    """List runs, show one, print its logs."""


@runs.command("list")
@project_option
@json_option
def runs_list(project: Path, *, as_json: bool) -> None:
    """List the project's runs, newest last."""
    session = open_session(project)
    found = list_runs(session.ledger.entries(), session.project.id)
    if as_json:
        print_json([dataclasses.asdict(item) for item in found])
        return
    for item in found:
        diff = f"diff {short(item.diff)} ({item.changes})" if item.changes else ""
        took = show_duration(item.wall_ms) if item.wall_ms else ""
        line = f"{item.run}  {plain(item.recipe):<16}  {item.outcome:<24}  {took:>8}  {diff}"
        click.echo(line.rstrip())
    if not found:
        click.echo("no runs yet", err=True)


@runs.command("show")
@click.argument("run")
@project_option
@json_option
def runs_show(run: str, project: Path, *, as_json: bool) -> None:
    """Show how RUN ended, what it used, and the limits that were observed."""
    session = open_session(project)
    item = find_run(session.ledger.entries(), session.project.id, run)
    if not item.record:
        if as_json:
            print_json(dataclasses.asdict(item))
        else:
            click.echo(f"run {item.run}: {item.outcome}; it left no record")
        return
    record = load_record(session, item)
    if as_json:
        print_json(record_json(record))
        return
    print_record(record)
    about = {
        "recipe": item.recipe,
        "plan": item.plan,
        "started": record.started,
        "finished": record.finished,
        "diff": item.diff,
    }
    for name, text in about.items():
        click.echo(click.style(f"{name:<10}", dim=True) + plain(text))
    click.echo("observed, as read back from engine and cgroup:")
    for name, value in record.observed.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        click.echo(click.style(f"  {name:<20}", dim=True) + plain(shown))


@runs.command("logs")
@click.argument("run")
@click.option("--stderr", is_flag=True, help="The standard error instead of the output.")
@click.option("--raw", is_flag=True, help="The stored bytes, exactly; they can drive a terminal.")
@project_option
def runs_logs(run: str, project: Path, *, stderr: bool, raw: bool) -> None:
    """Print what RUN wrote, as plain text."""
    session = open_session(project)
    record = load_record(session, find_run(session.ledger.entries(), session.project.id, run))
    stream = record.stderr if stderr else record.stdout
    text = PlainStream()
    for chunk in session.blobs.chunks(stream.kept):
        if raw:
            sys.stdout.buffer.write(chunk)
        else:
            click.echo(text.feed(chunk), nl=False)
    if not raw:
        click.echo(text.feed(b"", final=True), nl=False)
