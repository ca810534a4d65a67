"""`harness init` and `harness recipe`: begin a project, and look at its recipes."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import click

from harness.cli.command import Command, Group
from harness.cli.offer import offer
from harness.cli.options import (
    json_option,
    parameter_option,
    parse_parameters,
    print_json,
    project_option,
)
from harness.cli.plain import plain
from harness.cli.show_recipe import explained_json, print_explained
from harness.errors import InputError
from harness.flows.check import Checked, check_policies, check_recipes, find_stray_files
from harness.flows.explain import explain_recipe
from harness.flows.init import init_project
from harness.flows.recipes import list_recipe_names, read_recipe_named
from harness.flows.session import open_session


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Public SSH key of the first reviewer.  [default: ~/.ssh/id_ed25519.pub]",
)
@click.option("--reviewer", default="", help="Name of the first reviewer.  [default: your login]")
@json_option
def init(folder: Path, key: Path | None, reviewer: str, *, as_json: bool) -> None:
    """Write a commented starter set of recipes and policies.

    It goes into FOLDER, here when none is given. Files that are there already are left as they are.
    """
    begun = init_project(folder, key=key, reviewer=reviewer)
    if as_json:
        print_json(dataclasses.asdict(begun))
        return
    for name in begun.written:
        click.echo(f"wrote {name}")
    for name in begun.kept:
        click.echo(f"left as it is: {name}")
    if begun.reviewer:
        click.echo(f"reviewer: {plain(begun.reviewer)}")
    else:
        note = "nobody was enrolled as reviewer: add a line to policies/reviewers before you seal"
        click.secho(f"note: {note}", fg="yellow")
    click.echo("next: harness recipe check")


@click.group(cls=Group)
def recipe() -> None:
    """List, show and check recipes."""


@recipe.command("list")
@project_option
@json_option
def recipe_list(project: Path, *, as_json: bool) -> None:
    """List the project's recipes."""
    session = open_session(project)
    checked = check_recipes(session, list_recipe_names(session))
    if as_json:
        print_json([_checked_json(item) for item in checked])
        return
    for item in checked:
        if not item.cells:
            click.echo(f"{plain(item.name):<20}  has mistakes: harness recipe check {item.name}")
        else:
            about = plain(item.cells[0].description)
            click.echo(f"{plain(item.name):<20}  {item.cells[0].kind:<10}  {about}")
    if not checked:
        click.echo("no recipes yet; `harness init` writes a starter set", err=True)


@recipe.command("show")
@click.argument("name", shell_complete=offer("recipes"))
@parameter_option
@project_option
@json_option
def recipe_show(name: str, params: tuple[str, ...], project: Path, *, as_json: bool) -> None:
    """Show the recipe NAME as it would be sealed, parameters and limits filled in."""
    session = open_session(project)
    chosen = parse_parameters(params) if params else None
    cells, policy = read_recipe_named(session, name, chosen)
    bodies = [
        {
            "operation": cell.operation,
            **cell.to_json(),
            "needs": list(cell.needs),
            "limits": cell.limits.to_json(),
            "policy": policy.name,
        }
        for cell in cells
    ]
    if as_json:
        print_json(bodies)
        return
    for body in bodies:
        for key, value in body.items():
            click.echo(click.style(f"{key:<12}", dim=True) + plain(_show(value)))


@recipe.command("check")
@click.argument("names", nargs=-1, shell_complete=offer("recipes"))
@click.option(
    "--explain", is_flag=True, help="Also show every effective value, its source, and the files."
)
@project_option
@json_option
def recipe_check(names: tuple[str, ...], project: Path, *, explain: bool, as_json: bool) -> None:
    """Check recipes NAMES (all of them when none is given) and report every mistake.

    What a recipe needs is checked with it. Without NAMES the policies are checked too. Exit code 2
    when there is any mistake; each is shown with its file, line, column and the fix.

    With --explain each recipe is shown as it would be sealed: every limit and switch with who says
    so and where (recipe, policy, host or default), its operations and their order, the steps that
    are scripts, and the files that would enter or stay out, with the reason.
    """
    session = open_session(project)
    checked = check_recipes(session, list(names) or list_recipe_names(session))
    found = [issue for item in checked for issue in item.issues]
    if not names:
        found += [issue for item in check_policies(session) for issue in item.issues]
        found += find_stray_files(session)
    issues = tuple(dict.fromkeys(found))
    if issues:
        bad = [item.name for item in checked if item.issues]
        what = f"recipes with mistakes: {', '.join(bad)}" if bad else "policies with mistakes"
        raise InputError(what, issues=issues)
    explained = {item.name: explain_recipe(session, item.name) for item in checked if explain}
    if as_json:
        more = {name: {"explained": explained_json(found)} for name, found in explained.items()}
        print_json([{**_checked_json(item), **more.get(item.name, {})} for item in checked])
        return
    for item in checked:
        click.echo(f"{plain(item.name)}: ok")
        if explain:
            print_explained(explained[item.name])
    if not checked:
        click.echo("no recipes yet; `harness init` writes a starter set", err=True)


def _checked_json(item: Checked) -> dict[str, object]:
    return {
        "name": item.name,
        "ok": bool(item.cells),
        "kind": item.cells[0].kind if item.cells else "",
        "description": item.cells[0].description if item.cells else "",
        "issues": [
            {"where": issue.where, "message": issue.message, "fix": issue.fix}
            for issue in item.issues
        ],
    }


def _show(value: object) -> str:
    if isinstance(value, dict):
        if "argv" in value:
            return shlex.join(value["argv"])
        return "  ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_show(item) for item in value)
    return str(value)
