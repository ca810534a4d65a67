"""How a command that changes something begins: open the project, say what had to be settled."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.plain import plain
from harness.flows.session import Session
from harness.flows.work import begin_work


def begin(project: Path) -> Session:
    """Open a project for work and print, on stderr, what was settled first."""
    session, settled = begin_work(project)
    for line in settled.lines():
        click.echo(plain(line), err=True)
    return session
