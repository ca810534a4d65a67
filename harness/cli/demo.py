"""`harness demo`: the whole job once, on a real upstream project, with the real commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.errors import render_error
from harness.cli.options import is_terminal
from harness.cli.progress import narrating
from harness.errors import BaseDriftError, InputError, VerificationError
from harness.flows.demo import DemoProject, git_diff, make_demo_project
from harness.flows.history import Quarantined, RunSummary, list_plans, list_quarantined, list_runs
from harness.flows.images import build_named_image
from harness.flows.quarantined import load_quarantine, render_quarantine
from harness.flows.records import load_record
from harness.flows.session import Session, open_host, open_session
from harness.flows.setup import look_at_host, set_up
from harness.model.digest import Digest, digest_of, short

_PLAN = """\
The demonstration will
  1. find a Docker Engine, or install and start one (packages: docker.io, iptables, debootstrap)
  2. build the worker image: Debian, Python, pytest, ruff (a few minutes, once)
  3. obtain click 8.1.8 with pip, pinned by hash, into {folder}
  4. run click's own tests in a sealed, offline worker
  5. run a formatter over its sources; the change waits, is shown, approved and applied
  6. show a refusal: the target changes after the approval, and nothing is written

It signs with a throw-away key under a policy named for it: that proves nothing about a person, and
is refused in every other project.
"""

Invoke = Callable[[list[str]], object]


@dataclass(slots=True)
class _Story:
    """What was shown so far.

    Attributes:
        invoke: runs one command of the command line.
        project: what it is shown on.
        table: what happened, and how it ended.
    """

    invoke: Invoke
    project: DemoProject
    table: list[tuple[str, str]] = field(default_factory=list)

    def command(self, *words: str) -> None:
        """Show a command as a user would type it in the project, and run it."""
        click.secho(f"\n$ harness {' '.join(words)}", fg="cyan", bold=True)
        self.invoke([*words, "-C", str(self.project.root)])

    def session(self) -> Session:
        """Open the demonstration's project."""
        return open_session(self.project.root, demo=True)


@click.command(cls=Command)
@click.option("--yes", is_flag=True, help="Agree to installing and starting what is missing.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo"),
    show_default=True,
    help="Where the demonstration's project goes; made anew each time.",
)
@click.pass_context
def demo(context: click.Context, folder: Path, *, yes: bool) -> None:
    """Do the whole job once on a real upstream project.

    Says first what it will do. A second time it is quick.
    """
    click.echo(_PLAN.format(folder=folder))
    if not yes and not (is_terminal() and click.confirm("go on?", err=True)):
        raise InputError("demo: expected --yes, or a yes on a terminal")
    root = context.find_root().command

    def invoke(words: list[str]) -> object:
        return root.main(words, prog_name="harness", standalone_mode=False)

    _prepare_host()
    with narrating() as report:
        project = make_demo_project(folder.absolute(), environment=os.environ, report=report)
    story = _Story(invoke, project)
    story.session()
    _run_tests(story)
    waiting = _run_formatter(story)
    _show_refusal(story, waiting.diff)
    _land(story, waiting)
    _summarise(story)


def _prepare_host() -> None:
    host = open_host()
    _, steps = look_at_host(host, for_images=True)
    with narrating() as report:
        set_up(host, steps, report=report, consent=lambda _: True)
        build_named_image(host, "python", report)


def _run_recipe(story: _Story, recipe: str) -> RunSummary:
    """Seal, approve and run a recipe, and return how it ended.

    Raises:
        VerificationError: it did not pass.
    """
    story.command("seal", recipe)
    session = story.session()
    plan = list_plans(session.ledger.entries(), session.project.id)[-1].plan
    click.secho("\nthe throw-away key signs; in real life this is a reviewer's key", dim=True)
    story.command("approve", plan, "--key", str(story.project.key))
    story.command("run", plan)
    run = list_runs(session.ledger.entries(), session.project.id)[-1]
    if run.kind != "passed":
        raise VerificationError(f"demo: recipe {recipe} ended as {run.outcome}, expected passed")
    return run


def _run_tests(story: _Story) -> None:
    _title("click's own tests, sealed and offline")
    run = _run_recipe(story, "test")
    session = story.session()
    checks = load_record(session, run, run.operations[0]).checks
    counts = f"{checks['passed']} passed, {checks['failed']} failed, {checks['skipped']} skipped"
    story.table.append(("click's tests, in a sealed worker", f"{run.outcome}: {counts}"))


def _run_formatter(story: _Story) -> Quarantined:
    _title("a change, in quarantine")
    _run_recipe(story, "format")
    session = story.session()
    waiting = list_quarantined(session.ledger.entries(), session.project.id)[-1]
    story.command("diff", waiting.run)
    story.command("approve", waiting.diff, "--key", str(story.project.key))
    story.table.append(("formatter's change", f"diff {short(waiting.diff)} approved"))
    return waiting


def _show_refusal(story: _Story, diff: Digest) -> None:
    _title("a refusal: the target changes after the approval")
    path = story.project.root / "src" / "click" / "core.py"
    reviewed = path.read_bytes()
    path.write_bytes(reviewed + b"\n# changed after the approval\n")
    click.secho("\n$ echo '# changed after the approval' >> src/click/core.py", fg="cyan")
    before = git_diff(story.project, environment=os.environ)
    try:
        story.command("apply", diff)
    except BaseDriftError as error:
        render_error(error, as_json=False)
        click.echo(f"exit code {error.exit_code}")
    else:
        raise VerificationError("demo: a changed target was not noticed")
    if git_diff(story.project, environment=os.environ) != before:
        raise VerificationError("demo: a refused apply has written something")
    click.secho("nothing was written; the late change is taken away again", dim=True)
    path.write_bytes(reviewed)
    story.table.append(("apply on a changed target", f"refused, exit {BaseDriftError.exit_code}"))


def _land(story: _Story, waiting: Quarantined) -> None:
    _title("the approved change lands")
    session = story.session()
    patch = render_quarantine(session, load_quarantine(session, waiting))
    story.command("apply", waiting.diff)
    landed = git_diff(story.project, environment=os.environ)
    if landed.encode() != patch:
        raise VerificationError("demo: git diff and the approved patch differ")
    click.echo(f"git diff agrees byte for byte: {len(patch)} bytes, {digest_of(patch)}")
    story.table.append(("the approved change", "applied; git diff agrees byte for byte"))


def _summarise(story: _Story) -> None:
    _title("summary")
    report = open_host().ledger.verify()
    story.table.append(("ledger", f"verified: {report.size} entries, root {report.root}"))
    width = max(len(what) for what, _ in story.table)
    for what, ended in story.table:
        click.echo(f"  {what:<{width}}  {ended}")
    where = os.path.relpath(story.project.root)
    program = _program()
    click.echo(f"\nan engine that setup started keeps running; `{program} setup --stop` ends it")
    click.echo("\ntry next:")
    click.echo(f"  {program} runs list -C {where}")
    click.echo(f"  {program} ledger list")
    click.echo(f"  {program} init YOUR-PROJECT")


def _program() -> str:
    """Return how this program was called, so that the next commands can be typed as shown."""
    called = sys.argv[0]
    if called.endswith("__main__.py"):
        return "python -m harness"
    found = shutil.which("harness")
    on_path = found is not None and Path(found).resolve() == Path(called).resolve()
    return "harness" if on_path else os.path.relpath(called)


def _title(text: str) -> None:
    click.secho(f"\n== {text} ==", bold=True)
