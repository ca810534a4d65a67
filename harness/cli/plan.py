"""`harness seal` and `harness plan`: make a plan, and look at plans."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.amounts import show_names
from harness.cli.begin import begin
from harness.cli.command import Command, Group
from harness.cli.offer import offer
from harness.cli.options import (
    json_option,
    key_words,
    parameter_option,
    parse_parameters,
    print_json,
    project_option,
)
from harness.cli.plain import plain
from harness.cli.progress import working
from harness.cli.show_plan import plan_json, print_plan
from harness.flows.caller import caller_name
from harness.flows.plans import view_plan, view_plan_of, view_plans
from harness.flows.seal import seal_recipes
from harness.flows.session import open_session


@click.command(cls=Command)
@click.argument(
    "recipes", metavar="RECIPE...", nargs=-1, required=True, shell_complete=offer("recipes")
)
@parameter_option
@click.option("--why", default="", help="Why it should run; shown to the approver.")
@click.option("--requester", default="", help="Who asks.  [default: your login name]")
@project_option
@json_option
def seal(
    recipes: tuple[str, ...],
    params: tuple[str, ...],
    why: str,
    requester: str,
    project: Path,
    *,
    as_json: bool,
) -> None:
    """Freeze recipes, files, images and policy into one plan hash.

    RECIPE is a recipe's name; several, every cell of a matrix, and what a recipe needs make one
    plan. Nothing runs. The plan hash printed is what a reviewer approves: `harness approve HASH`,
    then `harness run HASH`.
    """
    session = begin(project)
    with working("sealing", quiet=as_json):
        sealed = seal_recipes(
            session,
            recipes,
            chosen=parse_parameters(params),
            why=why,
            requester=requester or caller_name(),
        )
    view = view_plan_of(session, session.ledger.entries(), sealed.plan.digest)
    if as_json:
        print_json(plan_json(view))
    else:
        print_plan(view)
        click.echo(f"next: harness approve {view.plan.digest}{key_words()}")


@click.group(cls=Group)
def plan() -> None:
    """List plans, or show what one would run."""


@plan.command("list")
@project_option
@json_option
def plan_list(project: Path, *, as_json: bool) -> None:
    """List the project's plans, newest last."""
    views = view_plans(open_session(project))
    if as_json:
        print_json([plan_json(view) for view in views])
        return
    for view in views:
        names = show_names([item.name for item in view.operations])
        click.echo(f"{view.plan.digest}  {view.plan.run}  {plain(names):<20}  {view.status}")
    if not views:
        click.echo("no plans yet; `harness seal RECIPE` makes one", err=True)


@plan.command("show")
@click.argument("plan_hash", metavar="HASH", shell_complete=offer("plans", "runs"))
@project_option
@json_option
def plan_show(plan_hash: str, project: Path, *, as_json: bool) -> None:
    """Show what the plan HASH (12 or more digits, or its run id) would run."""
    view = view_plan(open_session(project), plan_hash)
    if as_json:
        print_json(plan_json(view))
    else:
        print_plan(view)
