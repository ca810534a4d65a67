"""What the ledger says of one project: its plans, runs and quarantined diffs. Pure.

Everything here is derived from entries; nothing is kept beside the ledger that could disagree.
Entries of the first version knew one operation a run and gave it no name: it goes by its recipe's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, cast

from harness.model.digest import Digest
from harness.model.entry import Entry
from harness.model.outcome import OutcomeKind, worst_kind

OperationStatus = OutcomeKind | Literal["running", "waiting"]
_GOING_ON = ("running", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """One sealed plan.

    Attributes:
        plan: plan hash.
        run: run id it is for.
        operations: names of what it runs, in order.
        nonce: of the plan gate.
        sealed: RFC 3339 time.
    """

    plan: Digest
    run: str
    operations: tuple[str, ...]
    nonce: str
    sealed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRun:
    """One operation of a run, begun or ended.

    Attributes:
        name: as the plan says.
        kind: kind of the outcome; `running` or `waiting` while the run goes on.
        outcome: the outcome as text; as `kind` while the run goes on.
        finished: RFC 3339 time of its end; empty while the run goes on.
        record: digest of its run record; empty without one.
        wall_ms: how long it took; 0 when unknown.
        diff: diff hash; empty when nothing was quarantined.
        changes: number of changed paths.
    """

    name: str
    kind: OperationStatus
    outcome: str
    finished: str = ""
    record: str = ""
    wall_ms: int = 0
    diff: str = ""
    changes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run, begun or ended.

    Attributes:
        run: run id.
        plan: plan hash.
        started: RFC 3339 time of the intent.
        operations: in the order of the plan.
    """

    run: str
    plan: Digest
    started: str
    operations: tuple[OperationRun, ...]

    @property
    def is_over(self) -> bool:
        """Tell whether every operation has its end on the ledger."""
        return all(item.finished for item in self.operations)

    @property
    def finished(self) -> str:
        """Return the RFC 3339 time of the last end; empty while it goes on."""
        return max(item.finished for item in self.operations) if self.is_over else ""

    @property
    def kind(self) -> OutcomeKind | Literal["running"]:
        """Return the worst kind of its operations; `running` while it goes on."""
        ended = [item.kind for item in self.operations if item.kind not in _GOING_ON]
        return worst_kind(cast("list[OutcomeKind]", ended)) if self.is_over else "running"

    @property
    def outcome(self) -> str:
        """Return how it ended, as text."""
        if len(self.operations) == 1:
            return self.operations[0].outcome
        passed = sum(item.kind == "passed" for item in self.operations)
        return f"{self.kind} ({passed} of {len(self.operations)} passed)"

    @property
    def wall_ms(self) -> int:
        """Return how long its operations took together; 0 when unknown."""
        return sum(item.wall_ms for item in self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """One diff that waits, or that landed.

    Attributes:
        diff: diff hash.
        run: the run it came from.
        operation: the operation it came from.
        plan: plan hash of that run.
        record: digest of the quarantine record.
        nonce: of the diff gate.
        undoes: the diff that it takes back; empty for a run's own diff.
        waiting_since: RFC 3339 time.
        landed: RFC 3339 time of the apply; empty while it waits.
        changes: number of changed paths.
    """

    diff: Digest
    run: str
    operation: str
    plan: Digest
    record: Digest
    nonce: str
    undoes: str
    waiting_since: str
    landed: str
    changes: int


def list_plans(entries: Iterable[Entry], project: str) -> list[PlanSummary]:
    """Return a project's plans, oldest first."""
    return [
        PlanSummary(
            plan=entry.body["plan"],
            run=entry.body["run"],
            operations=_planned(entry.body),
            nonce=entry.body["nonce"],
            sealed=entry.time,
        )
        for entry in entries
        if entry.verb == "seal" and entry.project == project
    ]


def _planned(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a plan's operations, as its seal entry says them."""
    if "operations" in body:
        return tuple(item["name"] for item in body["operations"])
    return (body["recipe"],)


def list_runs(entries: Sequence[Entry], project: str) -> list[RunSummary]:
    """Return a project's runs, oldest first."""
    planned = {plan.run: plan.operations for plan in list_plans(entries, project)}
    ends = _by_operation(entries, "run", planned)
    diffs = _by_operation(entries, "quarantine", planned)
    return [
        _summarise(entry, planned.get(entry.body["run"], ()), ends, diffs)
        for entry in entries
        if entry.verb == "run" and entry.phase == "intent" and entry.project == project
    ]


_Ends = Mapping[tuple[str, str], Entry]


def _by_operation(
    entries: Sequence[Entry], verb: str, planned: Mapping[str, tuple[str, ...]]
) -> _Ends:
    """Return the `done` entries of a verb by run and operation."""
    return {
        (entry.body["run"], _operation_of(entry, planned)): entry
        for entry in entries
        if entry.verb == verb and entry.phase == "done"
    }


def _operation_of(entry: Entry, planned: Mapping[str, tuple[str, ...]]) -> str:
    """Return the operation an entry is about; one of the first version had only one."""
    if "operation" in entry.body:
        return str(entry.body["operation"])
    return next(iter(planned.get(entry.body["run"], ())), "")


def _summarise(intent: Entry, names: tuple[str, ...], ends: _Ends, diffs: _Ends) -> RunSummary:
    run = intent.body["run"]
    found: list[OperationRun] = []
    status: OperationStatus = "running"
    for name in names:
        end, diff = ends.get((run, name)), diffs.get((run, name))
        if end is None:
            found.append(OperationRun(name=name, kind=status, outcome=status))
            status = "waiting"
            continue
        recorded = diff if diff is not None and end.body["record"] else None
        found.append(
            OperationRun(
                name=name,
                kind=end.body["kind"],
                outcome=end.body["outcome"],
                finished=end.time,
                record=end.body["record"],
                wall_ms=end.body["wallMs"],
                diff=recorded.body["diff"] if recorded else "",
                changes=recorded.body["changes"] if recorded else 0,
            )
        )
    return RunSummary(
        run=run, plan=intent.body["plan"], started=intent.time, operations=tuple(found)
    )


def list_quarantined(entries: Sequence[Entry], project: str) -> list[Quarantined]:
    """Return a project's quarantined diffs, oldest first.

    The diff of an operation whose controller died before its end was recorded is none of them.
    """
    planned = {plan.run: plan.operations for plan in list_plans(entries, project)}
    recorded = {
        where for where, end in _by_operation(entries, "run", planned).items() if end.body["record"]
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
            operation=_operation_of(entry, planned),
            plan=entry.body["plan"],
            record=entry.body["record"],
            nonce=entry.body["nonce"],
            undoes=entry.body.get("of", ""),
            waiting_since=entry.time,
            landed=landed.get(entry.body["nonce"], ""),
            changes=entry.body["changes"],
        )
        for entry in entries
        if entry.verb in ("quarantine", "undo")
        and entry.project == project
        and (entry.body["run"], _operation_of(entry, planned)) in recorded
    ]


def expect_duration(entries: Sequence[Entry], project: str, operation: str) -> tuple[int, int]:
    """Return the median wall time in ms of an operation's passed runs, and their number."""
    times = [
        item.wall_ms
        for run in list_runs(entries, project)
        for item in run.operations
        if item.name == operation and item.kind == "passed" and item.wall_ms
    ]
    return (round(median(times)), len(times)) if times else (0, 0)
