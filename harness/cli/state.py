"""`harness state`: keep what this host knows, and bring it back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness.cli.amounts import count, show_size
from harness.cli.command import Group
from harness.cli.options import json_option, print_json, read_given_file
from harness.cli.plain import plain
from harness.cli.projects import known_json
from harness.flows.backup import back_up
from harness.flows.projects import SHOWN_DIGITS
from harness.flows.restore import Restored, restore_state
from harness.flows.session import open_host
from harness.model.backup import Manifest


@click.group(cls=Group)
def state() -> None:
    """Back up the state of this host, and restore it."""


@state.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--with-key", is_flag=True, help="Also the private host key: whoever has it can sign as you."
)
@json_option
def state_backup(file: Path, *, with_key: bool, as_json: bool) -> None:
    """Write ledger, objects, project records and image names into FILE.

    Other commands may go on meanwhile. What can be made again is left out: snapshot layers, the
    cache of image bases, indexes, an engine of our own. Only you will be able to read FILE; it
    holds your logs and diffs.
    """
    made = back_up(open_host(), file, with_key=with_key)
    if as_json:
        body = {"file": str(made.file), "key": made.key, "checkpoint": made.checkpoint}
        print_json({**body, **_manifest_json(made.manifest)})
        return
    click.echo(f"{plain(str(made.file))}: {_amounts(made.manifest)}")
    if not made.manifest.has_key:
        click.secho(
            "note: the private host key is not in it; keep host/key.pem elsewhere, or add "
            "--with-key",
            fg="yellow",
        )
    click.echo("its signed checkpoint, to keep elsewhere:")
    click.echo(made.checkpoint.rstrip("\n"))


@state.command("restore")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--checkpoint",
    "kept",
    type=click.Path(path_type=Path),
    help="A checkpoint that you kept: refuse a backup that is older, or of another ledger.",
)
@json_option
def state_restore(file: Path, kept: Path | None, *, as_json: bool) -> None:
    """Bring back the state that was backed up in FILE.

    The state folder must be missing or empty. All of FILE is verified before any of it can be seen.
    What was done after the backup is not in it: approvals that it holds count no more, for they may
    have been used since.
    """
    note = read_given_file(kept, "checkpoint") if kept is not None else None
    restored = restore_state(file, environment=os.environ, kept=note)
    if as_json:
        print_json(_restored_json(restored))
        return
    click.echo(f"{plain(str(restored.root))}: {_amounts(restored.manifest)}")
    click.echo(f"signed by {plain(restored.key)}")
    for line in _notes(restored, checked=kept is not None):
        click.secho(f"note: {plain(line)}", fg="yellow")


def _notes(restored: Restored, *, checked: bool) -> list[str]:
    """Return what a person has to know after a restore, a line each."""
    made = restored.manifest.created
    notes = [f"what was done after {made} is not in it; approvals from before count no more"]
    if not checked:
        notes.append("nothing here shows how much that is: compare with a checkpoint that you kept")
    if restored.problem:
        notes.append(
            f"nothing can be signed: {restored.problem}; put host/key.pem back (mode 0600), or, "
            "when it is lost for good, `harness key renew --lost`"
        )
    notes.append("layers are not in a backup: seal again what waits to be run")
    notes += [
        f"project {item.name} is not at {item.root}; where is it? "
        f"`harness project move {item.id[:SHOWN_DIGITS]} FOLDER`"
        for item in restored.lost_projects
    ]
    if restored.missing_images is None:
        notes.append("no engine answers to ask for the images; `harness image list` does later")
    notes += [
        f"image {name}: the engine does not have it; `harness image list` says more"
        for name in restored.missing_images or ()
    ]
    return notes


def _amounts(manifest: Manifest) -> str:
    objects = manifest.objects
    return (
        f"{count(manifest.entries, 'ledger line')}, the last of {manifest.last or 'no time'}; "
        f"{count(objects.count, 'object')} ({show_size(objects.bytes)})"
    )


def _manifest_json(manifest: Manifest) -> dict[str, object]:
    return {
        "created": manifest.created,
        "entries": manifest.entries,
        "root": manifest.root,
        "last": manifest.last,
        "objects": manifest.objects.count,
        "bytes": manifest.objects.bytes,
        "withKey": manifest.has_key,
    }


def _restored_json(restored: Restored) -> dict[str, object]:
    return {
        "state": str(restored.root),
        "key": restored.key,
        "problem": restored.problem,
        "lostProjects": [known_json(item) for item in restored.lost_projects],
        "missingImages": None if restored.missing_images is None else list(restored.missing_images),
        **_manifest_json(restored.manifest),
    }
