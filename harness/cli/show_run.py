"""How a run reads: how it ended, what it checked, what it left, what to do next."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from harness.cli.amounts import count, show_size
from harness.cli.options import key_words
from harness.cli.plain import plain
from harness.flows.operation import Ended
from harness.flows.run import Ran
from harness.model.clock import show_duration
from harness.model.digest import Digest
from harness.model.outcome import StepReport
from harness.model.run_record import RunRecord, StreamRecord

LABEL = 10


def print_ran(ran: Ran) -> None:
    """Print the end of a run that was just made."""
    several = len(ran.operations) > 1
    for ended in ran.operations:
        _print_ended(ran, ended, several=several)
    for problem in ran.problems:
        _note(problem)
    if several:
        passed = sum(item.outcome.kind == "passed" for item in ran.operations)
        _headline(f"run {ran.plan.run}", f"{passed} of {len(ran.operations)} passed", ran.kind)
    _print_next(ran)


def _print_ended(ran: Ran, ended: Ended, *, several: bool) -> None:
    if ended.record is None:
        _headline(f"run {ran.plan.run}/{ended.name}", str(ended.outcome), ended.outcome.kind)
        return
    print_record(ended.record, several=several)
    for problem in ended.problems:
        _note(problem)
    if ended.imported is None:
        return
    changeset = ended.imported.changeset
    for name in ended.imported.missing:
        _line("missing", f"the declared output {name}")
    if ended.imported.by_products:
        _line("aside", f"{count(len(ended.imported.by_products), 'by-product')}, never imported")
    if not changeset.changes:
        _line("diff", "nothing that could land changed")
        return
    _line("diff", f"{changeset.digest}  {count(len(changeset.changes), 'changed path')}")


def _print_next(ran: Ran) -> None:
    """Print what to do with the diffs that wait; the same diff of two operations lands once."""
    changed = [item for item in ran.operations if item.imported and item.imported.changeset.changes]
    told: set[Digest] = set()
    for item in changed:
        digest = item.imported.changeset.digest if item.imported else None
        if digest is None or digest in told:
            continue
        told.add(digest)
        where = ran.plan.run if len(changed) == 1 else f"{ran.plan.run}/{item.name}"
        click.echo(f"next: harness diff {where}")
        if item.outcome.kind == "passed":
            click.echo(f"then: harness approve {digest}{key_words()}")


def _note(problem: str) -> None:
    click.secho(f"note: {plain(problem)}", fg="yellow", err=True)


def _headline(subject: str, text: str, kind: str) -> None:
    click.secho(f"{plain(subject)}: {text}", fg="green" if kind == "passed" else "red", bold=True)


def print_record(record: RunRecord, *, several: bool) -> None:
    """Print a run record.

    Args:
        record: what happened.
        several: the run has other operations too, so this one is named.
    """
    subject = f"run {record.run}/{record.operation}" if several else f"run {record.run}"
    _headline(subject, str(record.outcome), record.outcome.kind)
    for step in record.steps:
        _line("step", f"{step.index + 1}. {_step_end(step)} in {show_duration(step.duration_ms)}")
    if record.checks:
        checks = record.checks
        _line(
            "checks",
            f"{checks['run']} ran: {checks['passed']} passed, {checks['failed']} failed; "
            f"{checks['skipped']} skipped",
        )
    for name, stream in (("stdout", record.stdout), ("stderr", record.stderr)):
        if stream.total_bytes:
            _line(name, _stream(stream))
    for artifact in record.artifacts:
        _line("artifact", f"{artifact.name}: {artifact.path}, {show_size(artifact.size)}")
    _line("used", _usage(record.usage))
    if record.workspace == "copy":
        _line("files", f"a copy, because {record.workspace_reason}")
    if record.hint:
        _line("hint", record.hint)


def ran_json(ran: Ran) -> dict[str, Any]:
    """Return the JSON form of `harness run`."""
    return {
        "run": ran.plan.run,
        "plan": ran.plan.digest,
        "kind": ran.kind,
        "exitCode": ran.exit_code,
        "operations": [_ended_json(item) for item in ran.operations],
        "problems": list(ran.problems),
    }


def _ended_json(ended: Ended) -> dict[str, Any]:
    imported = ended.imported
    return {
        "name": ended.name,
        "outcome": {**ended.outcome.to_json(), "text": str(ended.outcome)},
        "record": record_json(ended.record) if ended.record else None,
        "diff": imported.changeset.digest if imported else "",
        "changes": len(imported.changeset.changes) if imported else 0,
        "byProducts": len(imported.by_products) if imported else 0,
        "missing": list(imported.missing) if imported else [],
        "problems": list(ended.problems),
    }


def record_json(record: RunRecord) -> dict[str, Any]:
    """Return the JSON form of a run record."""
    return {
        "run": record.run,
        "operation": record.operation,
        "plan": record.plan,
        "seal": record.seal,
        "record": record.digest,
        "outcome": {**record.outcome.to_json(), "text": str(record.outcome)},
        "started": record.started,
        "finished": record.finished,
        "steps": [step.to_json() for step in record.steps],
        "stdout": record.stdout.to_json(),
        "stderr": record.stderr.to_json(),
        "checks": dict(record.checks),
        "artifacts": [artifact.to_json() for artifact in record.artifacts],
        "observed": dict(record.observed),
        "usage": dict(record.usage),
        "workspace": record.workspace,
        "workspaceReason": record.workspace_reason,
        "hint": record.hint,
        "engine": record.engine,
    }


def _line(label: str, text: str) -> None:
    click.echo(click.style(f"{label:<{LABEL}}", dim=True) + plain(text))


def _step_end(step: StepReport) -> str:
    if step.exec_errno:
        reason = os.strerror(step.exec_errno).lower()
        return f"its program could not be started in this image: {reason}; exit {step.exit}"
    return f"signal {step.signal}" if step.signal is not None else f"exit {step.exit}"


def _stream(stream: StreamRecord) -> str:
    kept = ""
    if stream.truncated:
        kept = (
            f", cut: the first {show_size(stream.head_bytes)} and the last "
            f"{show_size(stream.tail_bytes)} are kept"
        )
    return f"{show_size(stream.total_bytes)}{kept}  {stream.digest}"


def _usage(usage: Mapping[str, Any]) -> str:
    parts = [f"{show_duration(usage['wall_ms'])} wall"]
    if isinstance(usage["cpu_ms"], int):
        parts.append(f"{show_duration(usage['cpu_ms'])} cpu")
    if isinstance(usage["memory_peak_bytes"], int):
        parts.append(f"{show_size(usage['memory_peak_bytes'])} memory at most")
    return ", ".join(parts)
