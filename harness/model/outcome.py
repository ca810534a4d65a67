"""How a run ended: a value, decided from facts by one pure function; never from log text.

A recipe that fails is an outcome, not an error. `infra-failure` says that the harness or the
engine failed around the recipe; it is never a verdict on the recipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.model.recipe import PASSING, Step

OutcomeKind = Literal[
    "passed",
    "failed",
    "signalled",
    "timeout",
    "oom",
    "output-limit",
    "disk-limit",
    "infra-failure",
    "interrupted",
    "cancelled",
    "skipped",
]

EXIT_CODES: Mapping[OutcomeKind, int] = {
    "passed": 0,
    "failed": 1,
    "signalled": 1,
    "timeout": 1,
    "oom": 1,
    "output-limit": 1,
    "disk-limit": 1,
    "infra-failure": 6,
    "interrupted": 130,
    "cancelled": 130,
    "skipped": 1,
}

_WORST_FIRST: tuple[OutcomeKind, ...] = (
    "infra-failure",
    "interrupted",
    "cancelled",
    "oom",
    "disk-limit",
    "output-limit",
    "timeout",
    "signalled",
    "failed",
    "skipped",
    "passed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended.

    Attributes:
        kind: one of `OutcomeKind`.
        step: index of the step it is about; None when it is about the whole run.
        code: exit status for `failed`, signal number for `signalled`.
        cause: a short fixed text: why it timed out, or what failed around the recipe.
    """

    kind: OutcomeKind
    step: int | None = None
    code: int | None = None
    cause: str = ""

    def __str__(self) -> str:
        if self.kind in ("failed", "signalled") and self.code is not None:
            base = f"{self.kind}({self.code})"
        elif self.cause:
            return f"{self.kind}({self.cause})"
        else:
            base = self.kind
        return f"{base}: {self.cause}" if self.cause else base

    @property
    def exit_code(self) -> int:
        """Return the command's exit code for this outcome."""
        return EXIT_CODES[self.kind]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {"kind": self.kind, "step": self.step, "code": self.code, "cause": self.cause}


def worst_kind(kinds: Iterable[OutcomeKind]) -> OutcomeKind:
    """Return how a run of several operations ended: as the worst of them did.

    Args:
        kinds: of the operations; without any, nothing was run, which is `skipped`.
    """
    return min(kinds, key=_WORST_FIRST.index, default="skipped")


def parse_outcome(value: Mapping[str, Any]) -> Outcome:
    """Read what `Outcome.to_json` wrote."""
    return Outcome(kind=value["kind"], step=value["step"], code=value["code"], cause=value["cause"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What init reported of one step: exactly one of `exit` and `signal` is set.

    Attributes:
        index: position in the recipe, from 0.
        exit: exit status; 126 and 127 when it could not be executed (then `exec_errno` is set).
        signal: number of the signal that ended it.
        exec_errno: errno of the failed execve, else 0.
        duration_ms: on init's monotonic clock.
        timed_out: it reached its timeout and was told to end, however it then ended.
    """

    index: int
    exit: int | None
    signal: int | None
    exec_errno: int
    duration_ms: int
    timed_out: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "index": self.index,
            "exit": self.exit,
            "signal": self.signal,
            "execErrno": self.exec_errno,
            "durationMs": self.duration_ms,
            "timedOut": self.timed_out,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the host saw of one run, before any judgement.

    Attributes:
        planned: the steps of the recipe.
        steps: reports of init, in order.
        finished: init said that it was done and held.
        stop_reason: why the host itself ended it: `` (did not), wall, idle, output, disk,
            interrupt, cancel.
        outer_deadline: init's own deadline ended the payload.
        oom_kills: kills by the memory cgroup; None when the host can't show them.
        engine_oom: the engine's own flag.
        infra: why the surroundings failed; empty when they did not.
        checks_run: checks counted in the test report; None without a report.
        checks_failed: checks that failed in it.
        report_problem: why a declared report can't be counted; empty when it can.
        output_problem: why a declared output is not kept although it is there; empty when it is.
    """

    planned: tuple[Step, ...]
    steps: tuple[StepReport, ...]
    finished: bool
    stop_reason: str = ""
    outer_deadline: bool = False
    oom_kills: int | None = None
    engine_oom: bool = False
    infra: str = ""
    checks_run: int | None = None
    checks_failed: int = 0
    report_problem: str = ""
    output_problem: str = ""


_STOPS: Mapping[str, OutcomeKind] = {
    "wall": "timeout",
    "idle": "timeout",
    "output": "output-limit",
    "disk": "disk-limit",
    "interrupt": "interrupted",
    "cancel": "cancelled",
}


def classify_outcome(facts: Facts) -> Outcome:
    """Decide the outcome. Never raises, never `passed` unless every step ran and ended as allowed.

    The first rule that knows the answer decides: what the host itself did, then the memory
    cgroup, then what surrounded the run, then the payload's own status, then whether anything
    was checked.
    """
    for rule in (_by_host, _by_memory, _by_surroundings, _by_payload, _by_checks):
        outcome = rule(facts)
        if outcome is not None:
            return outcome
    return Outcome(kind="passed", step=_at(facts))


def _at(facts: Facts) -> int | None:
    """Return the index of the last step that ended."""
    return facts.steps[-1].index if facts.steps else None


def _is_clean(facts: Facts, step: StepReport) -> bool:
    """Tell whether a step ended by itself, with an exit code that its recipe allows."""
    known = step.index < len(facts.planned)
    allowed = facts.planned[step.index].allowed_exits if known else PASSING
    return step.exit in allowed and not (step.exec_errno or step.timed_out)


def _name(facts: Facts, index: int) -> str:
    """Return what a cause calls a step: its number, from 1, and its name."""
    name = facts.planned[index].name if index < len(facts.planned) else ""
    return f"step {index + 1}: {name}" if name else f"step {index + 1}"


def _by_host(facts: Facts) -> Outcome | None:
    reason = facts.stop_reason
    if reason in _STOPS:
        cause = reason if reason in ("wall", "idle") else ""
        return Outcome(kind=_STOPS[reason], step=_at(facts), cause=cause)
    if facts.outer_deadline:
        return Outcome(kind="timeout", step=_at(facts), cause="outer deadline")
    if facts.steps and facts.steps[-1].timed_out:
        index = facts.steps[-1].index
        return Outcome(kind="timeout", step=index, cause=_name(facts, index))
    return None


def _by_memory(facts: Facts) -> Outcome | None:
    """A kill for memory counts when the run did not survive it."""
    survived = facts.finished and bool(facts.steps) and _is_clean(facts, facts.steps[-1])
    if (facts.oom_kills or facts.engine_oom) and not survived:
        return Outcome(kind="oom", step=_at(facts))
    return None


def _by_surroundings(facts: Facts) -> Outcome | None:
    cause = facts.infra
    if not cause and not facts.finished:
        cause = "init ended without a report"
    if not cause and not facts.steps:
        cause = "no step was started"
    return Outcome(kind="infra-failure", step=_at(facts), cause=cause) if cause else None


def _by_payload(facts: Facts) -> Outcome | None:
    last = facts.steps[-1]
    if last.exec_errno:
        cause = "could not be executed"
        return Outcome(kind="failed", step=last.index, code=last.exit, cause=cause)
    if last.signal is not None:
        return Outcome(kind="signalled", step=last.index, code=last.signal)
    if not _is_clean(facts, last):
        return Outcome(kind="failed", step=last.index, code=last.exit)
    in_order = [step.index for step in facts.steps] == list(range(len(facts.planned)))
    if not in_order or not all(_is_clean(facts, step) for step in facts.steps):
        cause = "steps are missing from the report"
        return Outcome(kind="infra-failure", step=last.index, cause=cause)
    return None


def _by_checks(facts: Facts) -> Outcome | None:
    cause = facts.output_problem or facts.report_problem
    if not cause and facts.checks_run == 0:
        cause = "nothing was checked"
    if not cause and facts.checks_failed:
        cause = "the report counts failed checks"
    return Outcome(kind="failed", step=_at(facts), cause=cause) if cause else None
