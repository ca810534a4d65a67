"""What the ledger says of one project: its plans, runs and quarantined diffs. Pure.

Everything here is derived from entries; nothing is kept beside the ledger that could disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from harness.errors import InputError
from harness.model.digest import PREFIX, Digest, is_short_digest
from harness.model.entry import Entry

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """One sealed plan.

    Attributes:
        plan: plan hash.
        seal: seal digest.
        run: run id it is for.
        recipe: name.
        nonce: of the plan gate.
        sealed: RFC 3339 time.
    """

    plan: Digest
    seal: Digest
    run: str
    recipe: str
    nonce: str
    sealed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run, begun or ended.

    Attributes:
        run: run id.
        plan: plan hash.
        recipe: name.
        started: RFC 3339 time of the intent.
        finished: RFC 3339 time of the end; empty while it goes on.
        outcome: as text; `running` while it goes on.
        kind: kind of the outcome; `running` while it goes on.
        record: digest of the run record; empty while it goes on or when it was interrupted.
        wall_ms: how long it took; 0 when unknown.
        diff: diff hash; empty when nothing was quarantined.
        changes: number of changed paths.
    """

    run: str
    plan: Digest
    recipe: str
    started: str
    finished: str = ""
    outcome: str = "running"
    kind: str = "running"
    record: str = ""
    wall_ms: int = 0
    diff: str = ""
    changes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """One diff that waits, or that landed.

    Attributes:
        diff: diff hash.
        run: the run it came from.
        plan: plan hash of that run.
        record: digest of the quarantine record.
        nonce: of the diff gate.
        undoes: the diff that it takes back; empty for a run's own diff.
        waiting_since: RFC 3339 time.
        landed: RFC 3339 time of the apply; empty while it waits.
    """

    diff: Digest
    run: str
    plan: Digest
    record: Digest
    nonce: str
    undoes: str
    waiting_since: str
    landed: str


def list_plans(entries: Iterable[Entry], project: str) -> list[PlanSummary]:
    """Return a project's plans, oldest first."""
    return [
        PlanSummary(
            plan=entry.body["plan"],
            seal=entry.body["seal"],
            run=entry.body["run"],
            recipe=entry.body["recipe"],
            nonce=entry.body["nonce"],
            sealed=entry.time,
        )
        for entry in entries
        if entry.verb == "seal" and entry.project == project
    ]


def list_runs(entries: Sequence[Entry], project: str) -> list[RunSummary]:
    """Return a project's runs, oldest first."""
    recipes = {plan.run: plan.recipe for plan in list_plans(entries, project)}
    ends = {e.body["run"]: e for e in entries if e.verb == "run" and e.phase == "done"}
    diffs = {e.body["run"]: e for e in entries if e.verb == "quarantine"}
    found = []
    for entry in entries:
        if entry.verb != "run" or entry.phase != "intent" or entry.project != project:
            continue
        run = entry.body["run"]
        summary = RunSummary(
            run=run,
            plan=entry.body["plan"],
            recipe=recipes.get(run, ""),
            started=entry.time,
        )
        end, diff = ends.get(run), diffs.get(run)
        if end is not None:
            summary = RunSummary(
                run=run,
                plan=summary.plan,
                recipe=summary.recipe,
                started=entry.time,
                finished=end.time,
                outcome=end.body["outcome"],
                kind=end.body["kind"],
                record=end.body["record"],
                wall_ms=end.body["wallMs"],
                diff=diff.body["diff"] if diff and end.body["record"] else "",
                changes=diff.body["changes"] if diff and end.body["record"] else 0,
            )
        found.append(summary)
    return found


def list_quarantined(entries: Sequence[Entry], project: str) -> list[Quarantined]:
    """Return a project's quarantined diffs, oldest first.

    The diff of a run whose controller died before the run's end was recorded is none of them.
    """
    recorded = {
        entry.body["run"]
        for entry in entries
        if entry.verb == "run" and entry.phase == "done" and entry.body["record"]
    }
    landed = {
        entry.body["nonce"]: entry.time
        for entry in entries
        if entry.verb == "apply"
        and entry.phase == "done"
        and entry.body["result"] in ("applied", "empty")
    }
    return [
        Quarantined(
            diff=entry.body["diff"],
            run=entry.body["run"],
            plan=entry.body["plan"],
            record=entry.body["record"],
            nonce=entry.body["nonce"],
            undoes=entry.body.get("of", ""),
            waiting_since=entry.time,
            landed=landed.get(entry.body["nonce"], ""),
        )
        for entry in entries
        if entry.verb in ("quarantine", "undo")
        and entry.project == project
        and entry.body["run"] in recorded
    ]


def expect_duration(entries: Sequence[Entry], project: str, recipe: str) -> tuple[int, int]:
    """Return the median wall time in ms of the recipe's passed runs, and their number."""
    times = [
        run.wall_ms
        for run in list_runs(entries, project)
        if run.recipe == recipe and run.kind == "passed" and run.wall_ms
    ]
    return (round(median(times)), len(times)) if times else (0, 0)


def find_plan(entries: Sequence[Entry], project: str, given: str) -> PlanSummary:
    """Find a plan to look at, by 12 or more digits of its hash or by its run id.

    Raises:
        InputError: none or several fit.
    """
    return _pick(
        list_plans(entries, project), given, "plan", lambda plan: plan.plan, lambda plan: plan.run
    )


def find_quarantined(entries: Sequence[Entry], project: str, given: str) -> Quarantined:
    """Find a diff to look at, by 12 or more digits of its hash or by its run id.

    Raises:
        InputError: none or several fit, or the run it names left none.
    """
    for run in list_runs(entries, project):
        if run.run == given and not run.diff:
            raise InputError(
                f"diff: run {given} left none; it is {run.outcome}",
                hint=f"`harness runs show {given}` says more",
            )
    return _pick(
        list_quarantined(entries, project),
        given,
        "diff",
        lambda item: item.diff,
        lambda item: "" if item.undoes else item.run,
    )


def find_run(entries: Sequence[Entry], project: str, given: str) -> RunSummary:
    """Find a run by its id.

    Raises:
        InputError: there is none.
    """
    return _pick(
        list_runs(entries, project), given, "run", lambda run: run.plan, lambda run: run.run
    )


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
