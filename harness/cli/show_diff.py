"""How a quarantined diff reads to the person who is asked to approve it.

First what stands in the way, then what to look at, then every path, then the patch. Text of the
worker is never printed raw.
"""

from __future__ import annotations

import base64
from typing import Any

import click

from harness.cli.amounts import count, show_size
from harness.cli.plain import plain
from harness.flows.quarantined import Quarantine, render_quarantine
from harness.flows.session import Session
from harness.model.changeset import Change
from harness.model.relpath import path_to_json, show

BY_PRODUCTS_SHOWN = 10
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_SIGNS = {"add": "A", "modify": "M", "delete": "D", "mode": "m", "symlink": "L"}


def print_diff(session: Session, quarantine: Quarantine, *, patch: bool = True) -> None:
    """Print a diff; with its patch unless told otherwise."""
    print_stat(quarantine)
    if patch and quarantine.changeset.changes:
        click.echo()
        print_patch(render_quarantine(session, quarantine))


def print_stat(quarantine: Quarantine) -> None:
    """Print head, obstacles, flags, the changed paths and the by-products."""
    summary, record, changeset = quarantine.summary, quarantine.record, quarantine.changeset
    click.secho(f"diff {summary.diff}", bold=True)
    origin = f"of run {summary.run} ({record.outcome})"
    if summary.undoes:
        origin = f"takes back {summary.undoes}"
    state = f"landed {summary.landed}" if summary.landed else _waiting(quarantine)
    click.echo(f"{origin}; {state}")
    for path, reason in quarantine.obstacles:
        click.secho(f"cannot land: {show(path)} {reason}", fg="red", bold=True)
    for path, reason in record.flags:
        click.secho(f"look at: {show(path)}: {plain(reason)}", fg="yellow")
    for name in record.missing:
        click.secho(f"missing: the declared output {plain(name)}", fg="yellow")
    if not changeset.changes:
        click.echo("no change that could land")
    for change in changeset.changes:
        click.echo(_change_line(change))
    _print_by_products(quarantine)


def _waiting(quarantine: Quarantine) -> str:
    """Say that a diff waits, or is only kept: what did not pass can't be approved."""
    passed = quarantine.record.outcome == "passed"
    return "waits in quarantine" if passed else "kept in quarantine; can't land"


def print_patch(patch: bytes) -> None:
    """Print a patch with colours; what is not plainly visible is escaped."""
    text = patch.decode("utf-8", "backslashreplace")
    for line in text.removesuffix("\n").split("\n"):
        head = line.startswith(("+++", "---", "diff ", "index "))
        colour = None if head else _COLOURS.get(line[:1])
        click.secho(plain(line), fg=colour, bold=head or None)


def diff_json(session: Session, quarantine: Quarantine, *, patch: bool) -> dict[str, Any]:
    """Return the JSON form of `harness diff`."""
    summary, record, changeset = quarantine.summary, quarantine.record, quarantine.changeset
    body: dict[str, Any] = {
        "diff": summary.diff,
        "run": summary.run,
        "plan": summary.plan,
        "outcome": record.outcome,
        "undoes": summary.undoes,
        "base": changeset.base,
        "result": changeset.result,
        "waitingSince": summary.waiting_since,
        "landed": summary.landed,
        "obstacles": [
            {**path_to_json(path), "reason": reason} for path, reason in quarantine.obstacles
        ],
        "flags": [{**path_to_json(path), "reason": reason} for path, reason in record.flags],
        "missing": list(record.missing),
        "changes": [
            {
                **path_to_json(change.path),
                "op": change.op,
                "before": change.before.to_json() if change.before else None,
                "after": change.after.to_json() if change.after else None,
            }
            for change in changeset.changes
        ],
        "byProducts": {
            "digest": record.by_products,
            "items": [
                {
                    **path_to_json(item.path),
                    "op": item.op,
                    "kind": item.kind,
                    "size": item.size,
                    "reason": item.reason,
                }
                for item in quarantine.by_products
            ],
        },
    }
    if patch:
        body["patch_b64"] = base64.b64encode(render_quarantine(session, quarantine)).decode()
    return body


def _change_line(change: Change) -> str:
    before, after = change.before, change.after
    facts = []
    if before and after and before.mode != after.mode:
        facts.append(f"{before.mode} -> {after.mode}")
    if after and not before and after.mode != "100644":
        facts.append(after.type if after.type != "file" else after.mode)
    sizes = [show_size(node.size) for node in (before, after) if node and node.type == "file"]
    if sizes and change.op != "mode":
        facts.append(" -> ".join(sizes))
    note = f"  ({', '.join(facts)})" if facts else ""
    return f"  {_SIGNS[change.op]} {show(change.path)}{note}"


def _print_by_products(quarantine: Quarantine) -> None:
    items = quarantine.by_products
    if not items:
        return
    click.secho(f"{count(len(items), 'by-product')}, never imported:", dim=True)
    for item in items[:BY_PRODUCTS_SHOWN]:
        click.secho(f"    {show(item.path)} ({item.kind}, {item.reason})", dim=True)
    if len(items) > BY_PRODUCTS_SHOWN:
        click.secho(f"    {len(items) - BY_PRODUCTS_SHOWN} more; `--json` lists all", dim=True)
