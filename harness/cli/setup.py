"""`harness setup`: find an engine, or start one; and take that back."""

from __future__ import annotations

import click

from harness.cli.command import Command
from harness.cli.options import is_terminal, json_option, print_json
from harness.cli.progress import narrating
from harness.errors import EngineUnreachableError, InputError
from harness.flows.session import open_host
from harness.flows.setup import examine_engine, look_at_host, set_up, stop_engine, take_back


@click.command(cls=Command)
@click.option("--yes", is_flag=True, help="Agree to steps outside our own folders.")
@click.option("--images", is_flag=True, help="Also install what building images needs.")
@click.option("--check", is_flag=True, help="Only look; exit 6 when no engine can run workers.")
@click.option("--stop", is_flag=True, help="Stop the engine that setup started; its data stays.")
@click.option("--undo", is_flag=True, help="Take back all that setup did on this host.")
@json_option
def setup(*, yes: bool, images: bool, check: bool, stop: bool, undo: bool, as_json: bool) -> None:
    """Find or start a Docker Engine for sealed workers.

    Where an engine answers, nothing is installed unless --images is given. Where none is, you are
    told what will be installed and started, and asked before each step outside our own folders.
    --undo takes back what setup added.
    """
    if check + stop + undo > 1:
        raise InputError("setup: expected one of --check, --stop and --undo")
    host = open_host()
    consent = _agree if yes else _ask
    if stop:
        _say({"stopped": stop_engine(host)}, "stopped", "no engine of ours runs", as_json=as_json)
        return
    if undo:
        with narrating(quiet=as_json) as report:
            done = take_back(host, report=report, consent=consent)
        text = f"taken back: {'; '.join(done)}"
        _say({"undone": list(done)}, text, "there was nothing to take back", as_json=as_json)
        return
    engine, steps = look_at_host(host, for_images=images)
    if check:
        if engine is None:
            raise EngineUnreachableError(
                "engine: none answers",
                hint="`harness setup` would: " + "; ".join(s.text for s in steps),
            )
        notes = examine_engine(engine)
        text = f"engine: {engine.url} ({'; '.join((engine.origin, *notes))})"
        _say({"notes": list(notes), "engine": engine.url}, text, "", as_json=as_json)
        return
    if steps and not as_json:
        click.echo("setup will:")
        for step in steps:
            note = "  (outside our own folders)" if step.outside else ""
            click.echo(f"  - {step.text}{note}")
    with narrating(quiet=as_json) as report:
        address = set_up(host, steps, report=report, consent=consent)
    notes = examine_engine(address)
    state = "is ready" if steps else "answers, nothing to do"
    _say(
        {
            "notes": list(notes),
            "engine": address.url,
            "steps": [step.text for step in steps],
        },
        f"engine: {address.url} ({'; '.join((address.origin, *notes))}) {state}",
        "",
        as_json=as_json,
    )


def _agree(_: str) -> bool:
    return True


def _ask(text: str) -> bool:
    """Ask on a terminal; without one the answer is no."""
    return is_terminal() and click.confirm(f"{text}?", err=True)


def _say(body: dict[str, object], good: str, nothing: str, *, as_json: bool) -> None:
    """Print JSON, or one of two lines: the second when the body's only value is empty."""
    if as_json:
        print_json(body)
    else:
        click.echo(good if any(body.values()) else nothing)
