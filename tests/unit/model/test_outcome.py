"""How a run's facts become its outcome."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.outcome import (
    EXIT_CODES,
    Facts,
    Outcome,
    StepReport,
    classify_outcome,
    parse_outcome,
)
from harness.model.recipe import Step


def step(
    index: int = 0,
    *,
    code: int | None = 0,
    signal: int | None = None,
    errno: int = 0,
    late: bool = False,
) -> StepReport:
    return StepReport(
        index=index, exit=code, signal=signal, exec_errno=errno, duration_ms=1, timed_out=late
    )


def plan(count: int, *, exits: tuple[int, ...] = (0,)) -> tuple[Step, ...]:
    return tuple(Step(name=f"s{n}", argv=("x",), allowed_exits=exits) for n in range(count))


PASSED = Facts(planned=plan(1), steps=(step(),), finished=True)
FAILED = dataclasses.replace(PASSED, steps=(step(code=3),))
KILLED = dataclasses.replace(PASSED, steps=(step(code=None, signal=9),))

CASES = [
    ("passed", PASSED, "passed"),
    ("passed with checks", dataclasses.replace(PASSED, checks_run=4), "passed"),
    ("failed", FAILED, "failed(3)"),
    ("signalled", KILLED, "signalled(9)"),
    (
        "not executable",
        dataclasses.replace(PASSED, steps=(step(code=127, errno=2),)),
        "failed(127): could not be executed",
    ),
    ("wall clock", dataclasses.replace(KILLED, stop_reason="wall"), "timeout(wall)"),
    ("idle clock", dataclasses.replace(KILLED, stop_reason="idle"), "timeout(idle)"),
    (
        "wall clock, and the payload exits 0 on SIGTERM",
        dataclasses.replace(PASSED, stop_reason="wall"),
        "timeout(wall)",
    ),
    (
        "a step's timeout",
        dataclasses.replace(PASSED, steps=(step(code=None, signal=15, late=True),)),
        "timeout(step 1: s0)",
    ),
    (
        "a step's timeout, and the payload exits as allowed on SIGTERM",
        Facts(planned=plan(2), steps=(step(), step(1, late=True)), finished=True),
        "timeout(step 2: s1)",
    ),
    (
        "an exit code that is allowed",
        Facts(planned=plan(2, exits=(0, 5)), steps=(step(code=5), step(1)), finished=True),
        "passed",
    ),
    (
        "0 is not allowed unless it is in the list",
        Facts(planned=plan(1, exits=(5,)), steps=(step(),), finished=True),
        "failed(0)",
    ),
    (
        "an allowed code of a program that could not be executed",
        Facts(planned=plan(1, exits=(127,)), steps=(step(code=127, errno=2),), finished=True),
        "failed(127): could not be executed",
    ),
    (
        "a signal, whatever codes are allowed",
        Facts(planned=plan(1, exits=(0, 9, 137)), steps=KILLED.steps, finished=True),
        "signalled(9)",
    ),
    (
        "an output is too large",
        dataclasses.replace(PASSED, output_problem="output a: 9 bytes, over 8B"),
        "failed(output a: 9 bytes, over 8B)",
    ),
    (
        "outer deadline",
        dataclasses.replace(KILLED, outer_deadline=True),
        "timeout(outer deadline)",
    ),
    ("output", dataclasses.replace(KILLED, stop_reason="output"), "output-limit"),
    ("disk", dataclasses.replace(PASSED, stop_reason="disk"), "disk-limit"),
    ("interrupted", dataclasses.replace(KILLED, stop_reason="interrupt"), "interrupted"),
    ("cancelled", dataclasses.replace(KILLED, stop_reason="cancel"), "cancelled"),
    ("a child was killed for memory", dataclasses.replace(FAILED, oom_kills=1), "oom"),
    ("the engine says oom", dataclasses.replace(KILLED, engine_oom=True), "oom"),
    (
        "init itself was killed for memory",
        Facts(planned=plan(1), steps=(), finished=False, engine_oom=True, infra="init ended"),
        "oom",
    ),
    ("a kill that the run survived", dataclasses.replace(PASSED, oom_kills=1), "passed"),
    (
        "removed from outside",
        Facts(planned=plan(1), steps=(), finished=False, infra="removed"),
        "infra-failure(removed)",
    ),
    (
        "infra beats the payload's status",
        dataclasses.replace(FAILED, infra="engine lost"),
        "infra-failure(engine lost)",
    ),
    (
        "no report of init",
        dataclasses.replace(PASSED, finished=False),
        "infra-failure(init ended without a report)",
    ),
    (
        "no step",
        Facts(planned=plan(1), steps=(), finished=True),
        "infra-failure(no step was started)",
    ),
    (
        "a step is missing",
        dataclasses.replace(PASSED, planned=plan(2)),
        "infra-failure(steps are missing from the report)",
    ),
    (
        "a step failed and the next one ran",
        Facts(planned=plan(2), steps=(step(code=1), step(1)), finished=True),
        "infra-failure(steps are missing from the report)",
    ),
    (
        "nothing was checked",
        dataclasses.replace(PASSED, checks_run=0),
        "failed(nothing was checked)",
    ),
    (
        "the exit code hides failed checks",
        dataclasses.replace(PASSED, checks_run=3, checks_failed=1),
        "failed(the report counts failed checks)",
    ),
    (
        "the report can't be read",
        dataclasses.replace(PASSED, report_problem="report is missing"),
        "failed(report is missing)",
    ),
]


@pytest.mark.parametrize(
    ("facts", "shown"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_kind_of_end_has_its_outcome(facts: Facts, shown: str) -> None:
    assert str(classify_outcome(facts)) == shown


STEPS = st.builds(
    StepReport,
    index=st.integers(0, 3),
    exit=st.one_of(st.none(), st.sampled_from([0, 1, 126, 255])),
    signal=st.one_of(st.none(), st.sampled_from([9, 15])),
    exec_errno=st.sampled_from([0, 0, 2, 13]),
    duration_ms=st.just(1),
    timed_out=st.sampled_from([False, False, False, True]),
)
PLANS = st.builds(plan, st.integers(0, 3), exits=st.sampled_from([(0,), (0,), (0, 1), (126,)]))

FACTS = st.builds(
    Facts,
    planned=PLANS,
    steps=st.lists(STEPS, max_size=3).map(tuple),
    finished=st.booleans(),
    stop_reason=st.sampled_from(["", "", "wall", "idle", "output", "disk", "interrupt", "cancel"]),
    outer_deadline=st.booleans(),
    oom_kills=st.sampled_from([None, 0, 2]),
    engine_oom=st.booleans(),
    infra=st.sampled_from(["", "", "engine lost"]),
    checks_run=st.sampled_from([None, 0, 5]),
    checks_failed=st.sampled_from([0, 1]),
    report_problem=st.sampled_from(["", "missing"]),
    output_problem=st.sampled_from(["", "", "too large"]),
)

CLEAN = st.integers(1, 4).map(
    lambda count: Facts(
        planned=plan(count), steps=tuple(step(index) for index in range(count)), finished=True
    )
)


@given(FACTS)
def test_nothing_passes_unless_every_step_ran_and_ended_as_allowed(facts: Facts) -> None:
    outcome = classify_outcome(facts)
    assert outcome.kind in EXIT_CODES
    clean = (
        facts.finished
        and bool(facts.planned)
        and [report.index for report in facts.steps] == list(range(len(facts.planned)))
        and all(
            report.exit in planned.allowed_exits
            and (report.signal, report.exec_errno, report.timed_out) == (None, 0, False)
            for report, planned in zip(facts.steps, facts.planned, strict=False)
        )
        and not (facts.stop_reason or facts.outer_deadline or facts.infra)
        and facts.checks_run != 0
        and not facts.checks_failed
        and not facts.report_problem
        and not facts.output_problem
    )
    assert (outcome.kind == "passed") == clean
    assert (outcome.exit_code == 0) == clean


@given(CLEAN, st.sampled_from(["wall", "idle", "output", "disk", "interrupt", "cancel"]))
def test_what_the_host_ended_never_passes(facts: Facts, reason: str) -> None:
    assert classify_outcome(dataclasses.replace(facts, stop_reason=reason)).kind != "passed"


@given(CLEAN)
def test_a_clean_run_passes(facts: Facts) -> None:
    assert classify_outcome(facts) == Outcome(kind="passed", step=len(facts.planned) - 1)


@given(FACTS)
def test_an_outcome_survives_its_json(facts: Facts) -> None:
    outcome = classify_outcome(facts)
    assert parse_outcome(outcome.to_json()) == outcome


@given(FACTS.filter(lambda facts: bool(facts.infra)))
def test_an_infra_failure_is_never_a_verdict_on_the_recipe(facts: Facts) -> None:
    assert classify_outcome(facts).kind not in ("passed", "failed", "signalled")
