"""`harness key`: the key that signs this host's ledger."""

from __future__ import annotations

import click

from harness.cli.command import Group
from harness.cli.options import json_option, print_json
from harness.cli.plain import plain
from harness.errors import InputError
from harness.flows.keys import renew_key, rotate_key, show_keys
from harness.flows.session import open_host
from harness.ledger.key_change import KeyChange
from harness.ledger.report import Era

_BEGUN = {"first": "the first", "rotate": "handed over by the one before", "renew": "after a loss"}


@click.group(cls=Group)
def key() -> None:
    """Show, rotate and renew the key that signs the ledger."""


@key.command("show")
@json_option
def key_show(*, as_json: bool) -> None:
    """Show the verifier keys of this ledger, oldest first; the last one signs now.

    Give the last one to whoever checks your ledger. The ledger is verified on the way, so each
    handover that is shown was signed by the key before it.
    """
    keys = show_keys(open_host())
    if as_json:
        print_json({"keys": [era_json(era) for era in keys.eras], "problem": keys.problem})
        return
    for era in keys.eras:
        text = era.key.to_text() if era.key else "(lost; nobody knows it any more)"
        since = f"since {era.time}, " if era.time else ""
        click.echo(plain(text))
        click.secho(f"  from entry {era.since} on, {since}{_BEGUN[era.begun_by]}", dim=True)
    if keys.problem:
        click.secho(f"note: nothing can be signed: {plain(keys.problem)}", fg="yellow")


@key.command("rotate")
@json_option
def key_rotate(*, as_json: bool) -> None:
    """Hand over to a new key, under the signature of the old one.

    The old key stays good for what it signed, and its private half is overwritten. Whoever holds
    the old verifier key can follow the change: `harness ledger verify --vkey OLD`.
    """
    _say(rotate_key(open_host()), as_json=as_json)


@key.command("renew")
@click.option("--lost", is_flag=True, help="Say that the private key is lost for good.")
@json_option
def key_renew(*, lost: bool, as_json: bool) -> None:
    """Go on with a new key in place of one that is lost.

    No signature can connect the new key with the lost one, and the ledger says so for ever. Put
    host/ back from a backup instead when you have one. Refused while the key is there.
    """
    if not lost:
        raise InputError(
            "key: expected --lost",
            hint="a new key breaks the chain of signatures for good; look for a backup of host/ "
            "first, then give --lost",
        )
    _say(renew_key(open_host()), as_json=as_json)


def era_json(era: Era) -> dict[str, object]:
    """Return what programs get of one era of the ledger."""
    return {
        "key": era.key.to_text() if era.key else "",
        "since": era.since,
        "time": era.time,
        "begunBy": era.begun_by,
    }


def _say(change: KeyChange, *, as_json: bool) -> None:
    if as_json:
        old = change.old.to_text() if change.old else ""
        print_json({"entry": change.seq, "old": old, "new": change.new.to_text()})
        return
    click.echo(f"entry {change.seq}: the host key is now")
    click.echo(plain(change.new.to_text()))
    click.echo("next: give this line to whoever checks your ledger")
