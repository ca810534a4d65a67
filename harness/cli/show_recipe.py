"""How an explained recipe reads: values with their source, operations, scripts, files."""

from __future__ import annotations

from typing import Any

import click

from harness.cli.amounts import count, show_size
from harness.cli.plain import plain
from harness.flows.explain import Explained
from harness.model.relpath import show

MAX_SHOWN = 20
MAX_LISTED = 1000
"""Most paths of what stays out, on a terminal and as JSON; the count is always exact."""


def print_explained(explained: Explained) -> None:
    """Print what a recipe comes to."""
    for item in explained.values:
        source = f"{item.source} {item.where}".rstrip()
        click.echo(f"  {plain(item.field):<32}  {plain(item.value):<16}  {plain(source)}")
    _line("runs", ", ".join(explained.operations))
    if len(explained.order) > 1:
        _line("order", " -> ".join(explained.order))
    for script in explained.scripts:
        _line("script", f"step {script.step + 1}, {script.name}: {script.reason}")
    files = explained.files
    _line("enters", f"{count(files.files, 'file')}, {show_size(files.bytes)}")
    for out in files.left_out[:MAX_SHOWN]:
        _line("stays out", f"{show(out.path)}: {out.reason}")
    more = len(files.left_out) - MAX_SHOWN
    if more > 0:
        _line("stays out", f"and {count(more, 'path')} more")


def explained_json(explained: Explained) -> dict[str, Any]:
    """Return the JSON form of what a recipe comes to."""
    files = explained.files
    return {
        "values": [
            {
                "field": item.field,
                "value": item.value,
                "source": item.source,
                "where": item.where,
            }
            for item in explained.values
        ],
        "operations": list(explained.operations),
        "order": list(explained.order),
        "scripts": [
            {"step": item.step, "name": item.name, "reason": item.reason}
            for item in explained.scripts
        ],
        "files": files.files,
        "bytes": files.bytes,
        "leftOutCount": len(files.left_out),
        "leftOut": [
            {"path": show(item.path), "reason": item.reason} for item in files.left_out[:MAX_LISTED]
        ],
    }


def _line(label: str, text: str) -> None:
    click.echo(click.style(f"  {label:<11}", dim=True) + plain(text))
