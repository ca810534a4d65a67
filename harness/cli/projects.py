"""`harness project`: which projects this host knows, and where they are."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness.cli.command import Group
from harness.cli.options import json_option, print_json, project_option
from harness.cli.plain import plain
from harness.flows.projects import (
    SHOWN_DIGITS,
    KnownProject,
    add_project,
    list_projects,
    move_project,
)
from harness.flows.session import find_project_root, open_host, read_project
from harness.model.relpath import path_to_json, show


@click.group(cls=Group)
def project() -> None:
    """List projects, move one, add one."""


@project.command("list")
@json_option
def project_list(*, as_json: bool) -> None:
    """List the projects of this host, and whether their folders are still there."""
    known = list_projects(open_host().state)
    if as_json:
        print_json([known_json(item) for item in known])
        return
    for item in known:
        click.echo(
            f"{item.id[:SHOWN_DIGITS]}  {plain(item.name):<20}  {item.place:<10}  {_root(item)}"
        )
    if not known:
        click.echo("no projects yet", err=True)


@project.command("move")
@click.argument("known")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--old-stays",
    is_flag=True,
    help="The project's old folder is still there, and is another project from now on.",
)
@json_option
def project_move(known: str, folder: Path, *, old_stays: bool, as_json: bool) -> None:
    """Let the project KNOWN follow its folder, which is FOLDER now; here when none is given.

    KNOWN is its id, or 8 or more digits of it, or the folder where it was. Its ledger entries, its
    approvals and the diffs that wait stay its own. Nothing is copied or moved.
    """
    host = open_host()
    root = find_project_root(folder)
    moved, old = move_project(
        host.state,
        host.ledger,
        known,
        root=root,
        name=read_project(root).name,
        old_stays=old_stays,
    )
    if as_json:
        print_json({**known_json(moved), **path_to_json(os.fsencode(old), "old")})
        return
    click.echo(f"project {moved.id[:SHOWN_DIGITS]} ({plain(moved.name)}): {_root(moved)}")


@project.command("add")
@project_option
@json_option
def project_add(project: Path, *, as_json: bool) -> None:
    """Make a folder known as a project of its own.

    Needed only where another project of the same name is no longer where it was, since the folder
    might be that one: see `harness project move`. Everything else is known when it is first used.
    """
    root = find_project_root(project)
    added = add_project(open_host().state, root, read_project(root).name)
    if as_json:
        print_json(known_json(added))
        return
    click.echo(f"project {added.id[:SHOWN_DIGITS]} ({plain(added.name)}): {_root(added)}")


def known_json(item: KnownProject) -> dict[str, object]:
    """Return what programs get of one project."""
    return {
        "id": item.id,
        "name": item.name,
        "demo": item.demo,
        "place": item.place,
        **path_to_json(os.fsencode(item.root), "root"),
    }


def _root(item: KnownProject) -> str:
    return show(os.fsencode(item.root))
