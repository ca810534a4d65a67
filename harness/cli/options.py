"""Options that several commands share, and what they mean."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.outputs.table import named
from harness.errors import InputError
from harness.store.bounded import read_bounded

MAX_GIVEN = 65_536

F = TypeVar("F", bound=Callable[..., Any])


def project_option(command: F) -> F:
    """Add `-C/--project`."""
    return click.option(
        "-C",
        "--project",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        show_default="here, or the nearest folder above with a harness.yaml",
        help="The project's folder.",
    )(command)


def json_option(command: F) -> F:
    """Add `--json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON for programs, nothing else."
    )(command)


def parameter_option(command: F) -> F:
    """Add `-p/--param NAME=VALUE`, many times."""
    return click.option(
        "-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A recipe parameter."
    )(command)


def parse_parameters(items: tuple[str, ...]) -> dict[str, str]:
    """Read `NAME=VALUE` items.

    Raises:
        InputError: an item without `=`, or a name given twice.
    """
    chosen: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"--param: expected NAME=VALUE, got {item!r:.80}")
        if name in chosen:
            raise InputError(f"--param: {name} is given twice")
        chosen[name] = value
    return chosen


def print_json(value: Any) -> None:
    """Print a command's JSON, its `_type` added; ASCII only, so that no character can hide."""
    command = click.get_current_context().command_path.partition(" ")[2]
    click.echo(json.dumps(named(command, value), ensure_ascii=True, indent=2))


def read_given_file(path: Path, what: str) -> bytes:
    """Return the bytes of a small file that a person names.

    Raises:
        InputError: it can't be read, or has more than 64 KiB.
    """
    try:
        return read_bounded(path, MAX_GIVEN)
    except OSError as error:
        raise InputError(f"{what}: {path}: {error.strerror}") from error


def key_words() -> str:
    """Return what `harness approve` needs besides a hash where nobody can be asked."""
    return "" if is_terminal() else " --key KEY"


def is_terminal() -> bool:
    """Tell whether a person can be asked: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
