"""`harness run`: run an approved plan; on a terminal also seal, show and ask in one go."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.approve import confirm
from harness.cli.begin import begin
from harness.cli.command import Command
from harness.cli.interrupt import stop_on_signals
from harness.cli.live import live_output
from harness.cli.offer import offer
from harness.cli.options import (
    is_terminal,
    json_option,
    parameter_option,
    parse_parameters,
    print_json,
    project_option,
)
from harness.cli.progress import working
from harness.cli.show_run import print_ran, ran_json
from harness.cli.streams import let_reader_go
from harness.errors import ApprovalMissingError, InputError
from harness.flows.approve import decide
from harness.flows.caller import caller_name
from harness.flows.recipes import list_recipe_names
from harness.flows.run import run_plan
from harness.flows.seal import seal_recipes
from harness.flows.session import Session
from harness.model.digest import Digest, is_short_digest, parse_given_digest


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
    if _names_recipe(session, what):
        digest = _seal_and_ask(
            session, what, params, why=why, requester=requester or caller_name(), key=key
        )
    else:
        _refuse_recipe_words(params, why)
        digest = parse_given_digest(what[0])
        if key is not None:
            _approve(session, digest, key)
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


def _names_recipe(session: Session, what: tuple[str, ...]) -> bool:
    known = list_recipe_names(session)
    unknown = [name for name in what if name not in known]
    if not unknown:
        return True
    if len(what) == 1 and is_short_digest(what[0]):
        return False
    raise InputError(
        f"run: {unknown[0]!r:.80} is neither a recipe of this project nor a plan hash",
        hint="`harness recipe list` shows recipes, `harness plan list` plans; one hash at a time",
    )


def _refuse_recipe_words(params: tuple[str, ...], why: str) -> None:
    if params or why:
        raise InputError("run: --param and --why belong to a recipe; a plan is sealed already")


def _seal_and_ask(
    session: Session,
    recipes: tuple[str, ...],
    params: tuple[str, ...],
    *,
    why: str,
    requester: str,
    key: Path | None,
) -> Digest:
    """Seal recipes, show the plan, ask, and record the approval.

    Raises:
        ApprovalMissingError: there is no terminal to ask on.
    """
    names = " ".join(recipes)
    if not is_terminal():
        raise ApprovalMissingError(
            f"run {names}: nothing is approved without a terminal",
            hint=f"`harness seal {names}`, then `harness run HASH --key KEY` with the full hash",
        )
    with working("sealing"):
        sealed = seal_recipes(
            session, recipes, chosen=parse_parameters(params), why=why, requester=requester
        )
    digest = sealed.plan.digest
    chosen = confirm(session, digest, "approve", key=key)
    _approve(session, digest, chosen)
    return digest


def _approve(session: Session, digest: Digest, key: Path) -> None:
    decide(session, digest, decision="approve", key=key, comment="", interactive=is_terminal())
