"""Find what a person named: a plan, a run, one operation of it, or a diff. Pure.

A hash may be shortened to 12 or more digits here, to look at something; never to sign or apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.errors import InputError
from harness.flows.history import (
    OperationRun,
    PlanSummary,
    Quarantined,
    RunSummary,
    list_plans,
    list_quarantined,
    list_runs,
)
from harness.model.digest import PREFIX, Digest, is_short_digest
from harness.model.entry import Entry

T = TypeVar("T")

_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def find_plan(entries: Sequence[Entry], project: str, given: str) -> PlanSummary:
    """Find a plan to look at, by 12 or more digits of its hash or by its run id.

    Raises:
        InputError: none or several fit.
    """
    return _pick(
        list_plans(entries, project), given, "plan", lambda plan: plan.plan, lambda plan: plan.run
    )


def find_run(entries: Sequence[Entry], project: str, given: str) -> RunSummary:
    """Find a run by its id, or by 12 or more digits of its plan's hash.

    Raises:
        InputError: there is none.
    """
    return _pick(
        list_runs(entries, project), given, "run", lambda run: run.plan, lambda run: run.run
    )


def find_operation(
    entries: Sequence[Entry], project: str, given: str
) -> tuple[RunSummary, OperationRun]:
    """Find one operation, by `RUN/OPERATION`, or by `RUN` when the run has only one.

    Raises:
        InputError: none or several fit.
    """
    named, _, operation = given.partition("/")
    run = find_run(entries, project, named)
    if not operation and len(run.operations) == 1:
        return run, run.operations[0]
    for item in run.operations:
        if item.name == operation:
            return run, item
    problem = f"has no operation {operation!r:.80}" if operation else "has several operations"
    raise InputError(f"run {run.run}: {problem}", hint=_one_of(run, run.operations))


def find_quarantined(entries: Sequence[Entry], project: str, given: str) -> Quarantined:
    """Find a diff to look at: 12 or more digits of its hash, `RUN/OPERATION`, or `RUN`.

    A run's id is enough when only one of its operations changed something.

    Raises:
        InputError: none or several fit, or the run it names left none.
    """
    diffs = list_quarantined(entries, project)
    run = next((r for r in list_runs(entries, project) if r.run == given.partition("/")[0]), None)
    if run is None:
        return _pick(diffs, given, "diff", lambda item: item.diff, lambda _: "")
    operation = _changed(run) if "/" not in given else find_operation(entries, project, given)[1]
    for item in diffs:
        if (item.run, item.operation) == (run.run, operation.name) and not item.undoes:
            return item
    raise InputError(
        f"diff: run {given} left none; it is {operation.outcome}",
        hint=f"`harness runs show {given}` says more",
    )


def _changed(run: RunSummary) -> OperationRun:
    """Return the one operation of a run whose diff is meant by the run's id alone."""
    changed = [item for item in run.operations if item.changes]
    if len(changed) > 1:
        raise InputError(
            f"diff: {len(changed)} operations of run {run.run} changed something",
            hint=_one_of(run, changed),
        )
    return changed[0] if changed else run.operations[0]


def _one_of(run: RunSummary, operations: Sequence[OperationRun]) -> str:
    return "name one: " + ", ".join(f"{run.run}/{item.name}" for item in operations)


def pick_exact_plan(entries: Sequence[Entry], project: str, digest: Digest) -> PlanSummary | None:
    """Return the plan with this full hash, or None."""
    return next((p for p in list_plans(entries, project) if p.plan == digest), None)


def pick_exact_diff(entries: Sequence[Entry], project: str, digest: Digest) -> Quarantined | None:
    """Return the newest diff with this full hash, one that still waits before one that landed."""
    found = [q for q in list_quarantined(entries, project) if q.diff == digest]
    waiting = [item for item in found if not item.landed]
    candidates = waiting or found
    return candidates[-1] if candidates else None


def _pick(
    items: Sequence[T],
    given: str,
    what: str,
    digest_of_item: Callable[[T], str],
    run_of_item: Callable[[T], str],
) -> T:
    by_run = [item for item in items if run_of_item(item) == given]
    if by_run:
        return by_run[-1]
    if _RUN_ID.fullmatch(given):
        raise InputError(
            f"{what}: this project has no run {given}",
            hint="`harness runs list` and `harness plan list` show them",
        )
    if not is_short_digest(given):
        raise InputError(
            f"{what}: expected a run id or 12 or more digits of a hash, got {given!r:.80}",
            hint="`harness runs list` and `harness plan list` show them",
        )
    start = PREFIX + given.removeprefix(PREFIX)
    found = [item for item in items if digest_of_item(item).startswith(start)]
    if not found:
        raise InputError(
            f"{what}: nothing of this project has the hash {given:.80}",
            hint="`harness runs list` and `harness plan list` show them",
        )
    if len({digest_of_item(item) for item in found}) > 1:
        raise InputError(f"{what}: {given:.80} fits several; give more digits")
    return found[-1]
