"""`harness ledger`: look at the append-only ledger, and check it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.command import Group
from harness.cli.key import era_json
from harness.cli.options import json_option, print_json, read_given_file
from harness.cli.plain import plain
from harness.errors import InputError
from harness.flows.keys import verify_ledger
from harness.flows.session import open_host
from harness.model.canonical import parse_json
from harness.model.digest import parse_given_digest, short
from harness.model.entry import Entry

SHOWN = 50

_ABOUT = ("diff", "subject", "plan", "imageId")
_TOLD = ("run", "outcome", "reviewer", "recipe", "name")


@click.group(cls=Group)
def ledger() -> None:
    """List, show and verify the append-only ledger."""


@ledger.command("list")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=1),
    default=SHOWN,
    show_default=True,
    help="How many entries.",
)
@json_option
def ledger_list(last: int, *, as_json: bool) -> None:
    """List the last entries, newest last. They are verified on the way."""
    entries = open_host().ledger.entries()[-last:]
    if as_json:
        print_json([_entry_json(entry) for entry in entries])
        return
    for entry in entries:
        click.echo(
            f"{entry.seq:>6}  {entry.time}  {entry.verb:<10} {entry.phase:<6}  {_gist(entry)}"
        )


@ledger.command("show")
@click.argument("seq", type=click.IntRange(min=0))
@json_option
def ledger_show(seq: int, *, as_json: bool) -> None:
    """Show entry SEQ as it stands in the ledger."""
    entries = open_host().ledger.entries()
    if seq >= len(entries):
        raise InputError(f"ledger: expected an entry below {len(entries)}, got {seq}")
    entry = entries[seq]
    if as_json:
        print_json(_entry_json(entry))
    else:
        click.echo(plain(entry.to_bytes().decode("utf-8")))


@ledger.command("object")
@click.argument("digest")
def ledger_object(digest: str) -> None:
    """Print the exact bytes stored under DIGEST.

    Plans, statements, signatures, changesets and records that entries name are stored this way;
    what is printed can be checked with stock tools, `sha256sum` first of all.
    """
    for chunk in open_host().blobs.chunks(parse_given_digest(digest)):
        sys.stdout.buffer.write(chunk)


@ledger.command("verify")
@click.option(
    "--checkpoint",
    "kept",
    type=click.Path(path_type=Path),
    help="A checkpoint that you kept: the ledger must continue it.",
)
@click.option(
    "--vkey",
    help="A verifier key that you were given: each key after it must be signed by the one before.",
)
@json_option
def ledger_verify(kept: Path | None, vkey: str | None, *, as_json: bool) -> None:
    """Check every line, the chain, the tree and the signed checkpoint.

    Exit code 3 and the first bad line when something does not fit. Changes of the host's key are
    followed; only what you kept elsewhere shows a ledger that was cut back or replaced.
    """
    note = read_given_file(kept, "checkpoint") if kept is not None else None
    report = verify_ledger(open_host(), kept=note, vkey=vkey.strip() if vkey is not None else None)
    if as_json:
        print_json(
            {
                "size": report.size,
                "root": report.root,
                "time": report.time,
                "checkpoint": report.checkpoint,
                "keys": [era_json(era) for era in report.eras],
                "warnings": list(report.warnings),
            }
        )
        return
    click.secho(f"ledger ok: {report.size} entries, root {report.root}", fg="green")
    if kept is not None:
        click.echo("it continues the checkpoint that you kept")
    if vkey is not None:
        click.echo("its key follows from the one that you were given")
    for warning in report.warnings:
        click.secho(f"note: {plain(warning)}", fg="yellow")
    if report.checkpoint:
        click.echo("its signed checkpoint, to keep elsewhere:")
        click.echo(report.checkpoint.rstrip("\n"))


def _entry_json(entry: Entry) -> Any:
    return parse_json(entry.to_bytes())


def _gist(entry: Entry) -> str:
    """Return what an entry is about, in a few words."""
    body = entry.body
    about = next((body[key] for key in _ABOUT if body.get(key)), "")
    words = [short(str(about))] if about else []
    words += [str(body[key]) for key in _TOLD if body.get(key)]
    if entry.verb == "apply" and entry.phase == "done":
        words.append(str(body.get("result")))
    words += [f"{key}={value}" for key, value in entry.notes.items()]
    return plain("  ".join(words))
