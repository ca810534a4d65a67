"""How an error reads: one line, the places, the next step. Never a traceback."""

from __future__ import annotations

import json
import os
import traceback

import click

from harness.cli.plain import plain
from harness.errors import HarnessError


def render_error(error: HarnessError, *, as_json: bool) -> None:
    """Write one of our own errors to stderr."""
    if as_json:
        body = {
            "error": {
                "code": error.code,
                "message": error.message,
                "issues": [
                    {"where": issue.where, "message": issue.message, "fix": issue.fix}
                    for issue in error.issues
                ],
                "hint": error.hint,
            }
        }
        click.echo(json.dumps(body, ensure_ascii=True, indent=2), err=True)
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
        body = {
            "error": {
                "code": "usage",
                "message": error.format_message(),
                "issues": [],
                "hint": hint,
            }
        }
        click.echo(json.dumps(body, ensure_ascii=True, indent=2), err=True)
        return
    message = error.format_message()
    _say(f"error: {message[:1].lower()}{message[1:]}")
    _say(f"hint: `{hint}` shows the usage")


def render_unexpected(error: BaseException, *, as_json: bool) -> None:
    """Write a fault of ours to stderr, in one line; the trace only on request."""
    text = f"internal: {type(error).__name__}: {error}"
    hint = "a fault of harness: please report it; HARNESS_DEBUG=1 shows the trace"
    if as_json:
        body = {"error": {"code": "internal", "message": text, "issues": [], "hint": hint}}
        click.echo(json.dumps(body, ensure_ascii=True, indent=2), err=True)
    else:
        _say(f"error: {text}")
        _say(f"hint: {hint}")
    if os.environ.get("HARNESS_DEBUG"):
        traceback.print_exception(error)


def _say(text: str) -> None:
    click.echo(plain(text), err=True)
