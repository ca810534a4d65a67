"""How an error reads: one line, the places, the next step. Never a traceback."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Sequence

import click

from harness.cli.outputs.table import ERROR, type_of
from harness.cli.plain import plain
from harness.errors import HarnessError, Issue


def render_error(error: HarnessError, *, as_json: bool) -> None:
    """Write one of our own errors to stderr."""
    if as_json:
        _print(error.code, error.message, error.hint, error.issues)
        return
    _say(f"error: {error.message}")
    for issue in error.issues:
        if str(issue) not in error.message:
            _say(f"  {issue}")
    if error.hint:
        _say(f"hint: {error.hint}")


def render_usage(error: click.ClickException, *, as_json: bool) -> None:
    """Write a mistake in the command's own words to stderr."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context else "harness --help"
    if as_json:
        _print("usage", error.format_message(), hint)
        return
    message = error.format_message()
    _say(f"error: {message[:1].lower()}{message[1:]}")
    _say(f"hint: `{hint}` shows the usage")


def render_unexpected(error: BaseException, *, as_json: bool) -> None:
    """Write a fault of ours to stderr, in one line; the trace only on request."""
    text = f"internal: {type(error).__name__}: {error}"
    hint = "a fault of harness: please report it; HARNESS_DEBUG=1 shows the trace"
    if as_json:
        _print("internal", text, hint)
    else:
        _say(f"error: {text}")
        _say(f"hint: {hint}")
    if os.environ.get("HARNESS_DEBUG"):
        traceback.print_exception(error)


def _print(code: str, message: str, hint: str, issues: Sequence[Issue] = ()) -> None:
    body = {
        "code": code,
        "message": message,
        "issues": [
            {"where": issue.where, "message": issue.message, "fix": issue.fix} for issue in issues
        ],
        "hint": hint,
    }
    text = json.dumps({"_type": type_of(ERROR), "error": body}, ensure_ascii=True, indent=2)
    click.echo(text, err=True)


def _say(text: str) -> None:
    click.echo(plain(text), err=True)
