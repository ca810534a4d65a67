"""`harness artifacts`: the files that a run left on purpose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.amounts import show_size
from harness.cli.command import Group
from harness.cli.offer import offer
from harness.cli.options import json_option, print_json, project_option
from harness.cli.plain import plain
from harness.errors import InputError
from harness.flows.artifacts import (
    KeptArtifact,
    find_artifact,
    list_artifacts,
    read_artifact,
    save_artifact,
)
from harness.flows.session import open_session


@click.group(cls=Group)
def artifacts() -> None:
    """List the files that a run left on purpose, and get one."""


@artifacts.command("list")
@click.argument("run", metavar="RUN[/OPERATION]", shell_complete=offer("runs"))
@project_option
@json_option
def artifacts_list(run: str, project: Path, *, as_json: bool) -> None:
    """List what RUN left: the outputs of its recipes that were made."""
    found = list_artifacts(open_session(project), run)
    if as_json:
        print_json([_artifact_json(item) for item in found])
        return
    for item in found:
        artifact = item.artifact
        about = f"{show_size(artifact.size):>10}  {artifact.type or '-':<20}  {artifact.path}"
        click.echo(plain(f"{item.operation:<16}  {artifact.name:<16}  {about}"))
    if not found:
        click.echo("no artifacts: its recipes declare no outputs, or none was made", err=True)


@artifacts.command("get")
@click.argument("run", metavar="RUN[/OPERATION]", shell_complete=offer("runs"))
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=Path("-"),
    help="File to write.  [default: standard output]",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@project_option
def artifacts_get(run: str, name: str, output: Path, project: Path, *, force: bool) -> None:
    """Write the exact bytes of one artifact, checked against the record of RUN.

    They go to a file, or to standard output where that is no terminal: they are a worker's own and
    can drive one.
    """
    session = open_session(project)
    kept = find_artifact(session, run, name)
    if str(output) != "-":
        save_artifact(session, kept, output, replace=force)
        size = show_size(kept.artifact.size)
        click.echo(f"wrote {plain(str(output))}, {size}, {kept.artifact.digest}", err=True)
        return
    if sys.stdout.isatty():
        raise InputError(
            f"artifact {name:.80}: its bytes can drive a terminal",
            hint="name a file with --output FILE, or pipe it",
        )
    for chunk in read_artifact(session, kept):
        sys.stdout.buffer.write(chunk)


def _artifact_json(kept: KeptArtifact) -> dict[str, Any]:
    return {"run": kept.run, "operation": kept.operation, **kept.artifact.to_json()}
