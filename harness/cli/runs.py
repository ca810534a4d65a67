"""`harness runs`: look at runs, follow one that goes on, ask it to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.amounts import show_names
from harness.cli.command import Group
from harness.cli.live import live_output
from harness.cli.offer import offer
from harness.cli.options import json_option, print_json, project_option
from harness.cli.plain import PlainStream, plain
from harness.cli.show_run import print_record, record_json
from harness.errors import InputError
from harness.flows.history import OperationRun, RunSummary, list_runs
from harness.flows.live_runs import cancel_run, find_live_run, follow_run
from harness.flows.lookup import find_operation, find_run
from harness.flows.records import load_record
from harness.flows.session import Session, open_session
from harness.model.clock import show_duration
from harness.model.digest import short


@click.group(cls=Group)
def runs() -> None:
    """List runs, show one, print or follow its logs, end it."""


@runs.command("list")
@project_option
@json_option
def runs_list(project: Path, *, as_json: bool) -> None:
    """List the project's runs, newest last."""
    session = open_session(project)
    found = list_runs(session.ledger.entries(), session.project.id)
    if as_json:
        print_json([_run_json(item) for item in found])
        return
    for item in found:
        names = plain(show_names([operation.name for operation in item.operations]))
        took = show_duration(item.wall_ms) if item.wall_ms else ""
        line = f"{item.run}  {names:<16}  {item.outcome:<24}  {took:>8}  {_diffs(item)}"
        click.echo(line.rstrip())
    if not found:
        click.echo("no runs yet", err=True)


def _diffs(run: RunSummary) -> str:
    changed = [item for item in run.operations if item.changes]
    if len(changed) > 1:
        return f"{len(changed)} diffs"
    return f"diff {short(changed[0].diff)} ({changed[0].changes})" if changed else ""


def _run_json(run: RunSummary) -> dict[str, Any]:
    return {
        "run": run.run,
        "plan": run.plan,
        "started": run.started,
        "finished": run.finished,
        "kind": run.kind,
        "outcome": run.outcome,
        "wallMs": run.wall_ms,
        "operations": [
            {
                "name": item.name,
                "kind": item.kind,
                "outcome": item.outcome,
                "finished": item.finished,
                "record": item.record,
                "wallMs": item.wall_ms,
                "diff": item.diff,
                "changes": item.changes,
            }
            for item in run.operations
        ],
    }


@runs.command("show")
@click.argument("run", metavar="RUN[/OPERATION]", shell_complete=offer("runs"))
@project_option
@json_option
def runs_show(run: str, project: Path, *, as_json: bool) -> None:
    """Show how RUN ended, what it used, and the limits that were observed."""
    session = open_session(project)
    entries, project_id = session.ledger.entries(), session.project.id
    if "/" in run:
        item, operation = find_operation(entries, project_id, run)
        shown: tuple[OperationRun, ...] = (operation,)
    else:
        item = find_run(entries, project_id, run)
        shown = item.operations
    if as_json:
        records = [_record_or_none(session, item, operation) for operation in shown]
        print_json({**_run_json(item), "records": records})
        return
    for operation in shown:
        _show_operation(session, item, operation)


def _record_or_none(
    session: Session, run: RunSummary, operation: OperationRun
) -> dict[str, Any] | None:
    return record_json(load_record(session, run, operation)) if operation.record else None


def _show_operation(session: Session, run: RunSummary, operation: OperationRun) -> None:
    several = len(run.operations) > 1
    if not operation.record:
        where = f"{run.run}/{operation.name}" if several else run.run
        click.echo(f"run {plain(where)}: {operation.outcome}; it left no record")
        return
    record = load_record(session, run, operation)
    print_record(record, several=several)
    about = {
        "recipe": operation.name,
        "plan": run.plan,
        "started": record.started,
        "finished": record.finished,
        "diff": operation.diff,
        "workspace": f"{record.workspace} {record.workspace_reason}".strip(),
    }
    for name, text in about.items():
        click.echo(click.style(f"{name:<10}", dim=True) + plain(text))
    click.echo("observed, as read back from engine and cgroup:")
    for name, value in record.observed.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        click.echo(click.style(f"  {name:<20}", dim=True) + plain(shown))


@runs.command("logs")
@click.argument("run", metavar="RUN[/OPERATION]", shell_complete=offer("runs"))
@click.option("--stderr", is_flag=True, help="The standard error instead of the output.")
@click.option("--raw", is_flag=True, help="The stored bytes, exactly; they can drive a terminal.")
@click.option("-f", "--follow", is_flag=True, help="Follow a run that goes on, to its end.")
@project_option
def runs_logs(run: str, project: Path, *, stderr: bool, raw: bool, follow: bool) -> None:
    """Print what RUN wrote, as plain text.

    With --follow, a run that goes on in another terminal is shown from its beginning until it ends,
    both streams and all operations; Ctrl-C ends the following and never the run.
    """
    session = open_session(project)
    if follow:
        _follow(session, run)
        return
    record = load_record(
        session, *find_operation(session.ledger.entries(), session.project.id, run)
    )
    stream = record.stderr if stderr else record.stdout
    text = PlainStream()
    for chunk in session.blobs.chunks(stream.kept):
        if raw:
            sys.stdout.buffer.write(chunk)
        else:
            click.echo(text.feed(chunk), nl=False)
    if not raw:
        click.echo(text.feed(b"", final=True), nl=False)


def _follow(session: Session, given: str) -> None:
    if "/" in given:
        raise InputError(
            f"run {given:.120}: a run is followed as a whole",
            hint=f"give the run alone: {given.partition('/')[0]:.80}",
        )
    run = find_live_run(session, given)
    several = len(run.operations) > 1
    with live_output(quiet=False, before=lambda: None) as show:
        for frame in follow_run(session, run):
            if frame.type == "S" and several:
                click.secho(f"== {plain(frame.data.decode(errors='replace'))}", bold=True, err=True)
            elif frame.type == "T":
                click.echo("what follows is in the stored logs only", err=True)
            elif frame.type in ("O", "E") and show is not None:
                show("stdout" if frame.type == "O" else "stderr", frame.data)
    ended = find_run(session.ledger.entries(), session.project.id, run.run)
    told = ended.outcome if ended.is_over else "its controller died before it ended"
    click.echo(f"run {ended.run}: {told}", err=True)


@runs.command("cancel")
@click.argument("run", metavar="RUN", shell_complete=offer("runs"))
@project_option
@json_option
def runs_cancel(run: str, project: Path, *, as_json: bool) -> None:
    """Ask RUN to end, and wait until it has.

    Its worker gets SIGTERM and a moment, then SIGKILL; operations that did not begin are cancelled
    too. What it wrote is kept, and its changes can't land.
    """
    session = open_session(project)
    ended = cancel_run(session, find_live_run(session, run))
    if as_json:
        print_json(_run_json(ended))
    else:
        click.echo(f"run {ended.run}: {ended.outcome}")
