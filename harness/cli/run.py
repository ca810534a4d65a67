"""`harness run`: run an approved plan; on a terminal also seal, show and ask in one go."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.begin import begin
from harness.cli.command import Command
from harness.cli.interrupt import stop_on_signals
from harness.cli.live import live_output
from harness.cli.offer import offer
from harness.cli.options import (
    json_option,
    parameter_option,
    print_json,
    project_option,
)
from harness.cli.progress import working
from harness.cli.show_run import print_ran, ran_json
from harness.cli.streams import let_reader_go
from harness.flows.run import run_plan
from harness.model.digest import is_full_digest, parse_given_digest


@click.command(cls=Command)
@click.argument(
    "what",
    metavar="HASH|RECIPE...",
    nargs=-1,
    required=True,
    shell_complete=offer("recipes", "plans"),
)
@parameter_option
@click.option("--why", default="", help="Why it should run; shown to the approver.")
@click.option("--requester", default="", help="Who asks.  [default: your login name]")
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Approve the plan HASH with this key before running it.",
)
@click.option("--quiet", is_flag=True, help="Do not print the worker's output while it comes.")
@project_option
@json_option
def run(
    *,
    what: tuple[str, ...],
    params: tuple[str, ...],
    why: str,
    requester: str,
    key: Path | None,
    project: Path,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run an approved plan in an offline worker.

    With a full plan HASH: run that plan, once. With names of RECIPEs, on a terminal: seal them,
    show the plan, ask you to approve it, and run it.

    The exit code is 0 when all of it passed, also when a diff waits, and 1 when something failed.
    """
    session = begin(project)
    if len(what) == 1 and is_full_digest(what[0]) and not (params or why or key):
        digest = parse_given_digest(what[0])
    else:
        # Most of sealing and approving is imported for it alone.
        from harness.cli.before_run import make_ready  # noqa: PLC0415 - an approved plan needs none

        digest = make_ready(session, what, params, why=why, requester=requester, key=key)
    with (
        stop_on_signals() as stop,
        working("starting", quiet=as_json) as tell,
        live_output(quiet=quiet or as_json, before=tell.give_way) as sink,
    ):
        ran = run_plan(session, digest, sink=sink, stop=stop, tell=tell)
    try:
        if as_json:
            print_json(ran_json(ran))
        else:
            print_ran(ran)
    except BrokenPipeError:
        let_reader_go()
    return ran.exit_code
