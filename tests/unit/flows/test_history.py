from __future__ import annotations

from typing import Any

import pytest

from harness.errors import InputError
from harness.flows.history import expect_duration, list_plans, list_quarantined, list_runs
from harness.flows.lookup import (
    find_operation,
    find_plan,
    find_quarantined,
    find_run,
    pick_exact_diff,
)
from harness.model.digest import Digest, digest_of
from harness.model.entry import Entry, EntryVerb, Phase

PLAN, OTHER_PLAN, DIFF, REVERSE = (digest_of(name) for name in (b"p", b"o", b"d", b"r"))
ZERO = digest_of(b"")


class Log:
    """Entries as the flows write them, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, verb: EntryVerb, phase: Phase, *, project: str = "one", **body: Any) -> None:
        seq = len(self.entries)
        self.entries.append(
            Entry(
                seq=seq,
                time=f"2026-01-31T12:00:{seq:02}.000Z",
                prev=ZERO,
                verb=verb,
                phase=phase,
                project=project,
                body=body,
                notes={},
            )
        )

    def seal(self, run: str, plan: Digest = PLAN, project: str = "one") -> None:
        self.add(
            "seal", "done", project=project, plan=plan, seal=ZERO, run=run, nonce="n", recipe="test"
        )

    def seal_suite(self, run: str, *names: str) -> None:
        operations = [{"name": name, "seal": ZERO, "snapshot": ZERO} for name in names]
        self.add("seal", "done", plan=OTHER_PLAN, run=run, nonce="s", operations=operations)
        self.add("run", "intent", run=run, plan=OTHER_PLAN, operations=list(names))

    def end_operation(
        self,
        run: str,
        name: str,
        kind: str,
        *,
        diff: Digest | None = None,
        record: str = ZERO,
        nonce: str = "",
    ) -> None:
        if diff:
            self.add(
                "quarantine",
                "done",
                run=run,
                operation=name,
                plan=OTHER_PLAN,
                diff=diff,
                record=ZERO,
                nonce=nonce or f"{run}{name}",
                changes=1,
            )
        self.add(
            "run",
            "done",
            run=run,
            operation=name,
            plan=OTHER_PLAN,
            record=record,
            outcome=kind,
            kind=kind,
            wallMs=10,
        )

    def run(self, run: str, *, record: str = ZERO, kind: str = "passed", wall: int = 100) -> None:
        self.add("run", "intent", run=run, plan=PLAN)
        self.quarantine(run)
        self.end(run, record=record, kind=kind, wall=wall)

    def quarantine(self, run: str, *, diff: Digest = DIFF, nonce: str = "q", of: str = "") -> None:
        body = {"run": run, "plan": PLAN, "diff": diff, "record": ZERO, "nonce": nonce}
        if of:
            self.add("undo", "done", **body, of=of, changes=1)
        else:
            self.add("quarantine", "done", **body, changes=1)

    def end(self, run: str, *, record: str, kind: str, wall: int = 0) -> None:
        self.add(
            "run", "done", run=run, plan=PLAN, record=record, outcome=kind, kind=kind, wallMs=wall
        )


@pytest.fixture
def log() -> Log:
    made = Log()
    made.seal("r1")
    return made


def test_a_run_goes_on_until_its_end_is_recorded(log: Log) -> None:
    log.add("run", "intent", run="r1", plan=PLAN)
    (run,) = list_runs(log.entries, "one")
    assert (run.kind, run.is_over, run.finished) == ("running", False, "")
    (operation,) = run.operations
    assert (operation.name, operation.kind, operation.diff) == ("test", "running", "")


def test_a_recorded_run_has_its_diff(log: Log) -> None:
    log.run("r1")
    (run,) = list_runs(log.entries, "one")
    (operation,) = run.operations
    assert (run.kind, run.wall_ms, operation.diff, operation.changes) == ("passed", 100, DIFF, 1)
    assert [item.diff for item in list_quarantined(log.entries, "one")] == [DIFF]


@pytest.mark.parametrize("settled", [True, False])
def test_the_diff_of_a_run_whose_controller_died_is_none(log: Log, settled: bool) -> None:
    """It died between the quarantine and the end: nothing may land of what is not recorded."""
    log.add("run", "intent", run="r1", plan=PLAN)
    log.quarantine("r1")
    if settled:
        log.end("r1", record="", kind="interrupted")
    (run,) = list_runs(log.entries, "one")
    assert [(item.diff, item.changes) for item in run.operations] == [("", 0)]
    assert list_quarantined(log.entries, "one") == []
    assert pick_exact_diff(log.entries, "one", DIFF) is None


def test_a_diff_that_waits_comes_before_one_that_landed(log: Log) -> None:
    log.run("r1")
    log.add("apply", "done", nonce="q", result="applied")
    log.quarantine("r1", nonce="again", of=REVERSE)
    found = pick_exact_diff(log.entries, "one", DIFF)
    assert found is not None
    assert (found.nonce, found.landed) == ("again", "")


def test_a_rolled_back_apply_has_not_landed(log: Log) -> None:
    log.run("r1")
    log.add("apply", "done", nonce="q", result="rolled-back")
    assert list_quarantined(log.entries, "one")[0].landed == ""


def test_a_run_id_means_the_runs_own_diff_and_not_its_undo(log: Log) -> None:
    log.run("r1")
    log.quarantine("r1", diff=REVERSE, nonce="u", of=DIFF)
    assert find_quarantined(log.entries, "one", "r1").diff == DIFF
    assert find_quarantined(log.entries, "one", REVERSE[7:19]).undoes == DIFF


def test_a_run_that_left_no_diff_is_named_with_its_outcome(log: Log) -> None:
    log.add("run", "intent", run="r1", plan=PLAN)
    with pytest.raises(InputError, match="diff: run r1 left none; it is running"):
        find_quarantined(log.entries, "one", "r1")
    log.end("r1", record=ZERO, kind="oom", wall=1)
    with pytest.raises(InputError, match="diff: run r1 left none; it is oom"):
        find_quarantined(log.entries, "one", "r1")


def test_projects_do_not_see_each_other(log: Log) -> None:
    log.run("r1")
    assert list_runs(log.entries, "two") == []
    assert list_quarantined(log.entries, "two") == []
    with pytest.raises(InputError, match="nothing of this project has the hash"):
        find_plan(log.entries, "two", PLAN[7:19])


def test_what_fits_several_plans_needs_more_digits(log: Log) -> None:
    twin = Digest(PLAN[:19] + OTHER_PLAN[19:])
    log.seal("r2", twin)
    with pytest.raises(InputError, match="fits several; give more digits"):
        find_plan(log.entries, "one", PLAN[7:19])
    assert find_plan(log.entries, "one", PLAN[7:40]).run == "r1"
    assert find_plan(log.entries, "one", "r2").plan == twin


@pytest.mark.parametrize("given", ["", "abc", PLAN[7:18], "../x"])
def test_too_few_digits_find_nothing(log: Log, given: str) -> None:
    with pytest.raises(InputError, match="expected a run id or 12 or more digits"):
        find_plan(log.entries, "one", given)


def test_a_run_id_of_another_project_is_not_called_malformed(log: Log) -> None:
    with pytest.raises(InputError, match="this project has no run 20260101-000000-abcdef"):
        find_run(log.entries, "one", "20260101-000000-abcdef")


def test_the_expected_time_is_the_median_of_passed_runs(log: Log) -> None:
    assert expect_duration(log.entries, "one", "test") == (0, 0)
    for number, (kind, wall) in enumerate(
        [("passed", 100), ("passed", 300), ("failed", 9000), ("passed", 200)]
    ):
        log.seal(f"x{number}")
        log.run(f"x{number}", kind=kind, wall=wall)
    assert expect_duration(log.entries, "one", "test") == (200, 3)


def test_a_suite_goes_on_until_its_last_operation_has_its_end(log: Log) -> None:
    log.seal_suite("s", "build", "test:py=3.11", "lint")
    log.end_operation("s", "build", "passed")
    run = list_runs(log.entries, "one")[-1]
    assert [item.kind for item in run.operations] == ["passed", "running", "waiting"]
    assert (run.kind, run.is_over, run.outcome) == ("running", False, "running (1 of 3 passed)")
    log.end_operation("s", "test:py=3.11", "failed")
    log.end_operation("s", "lint", "skipped", record="")
    run = list_runs(log.entries, "one")[-1]
    assert (run.kind, run.is_over, run.outcome) == ("failed", True, "failed (1 of 3 passed)")
    assert run.wall_ms == 30
    assert list_plans(log.entries, "one")[-1].operations == ("build", "test:py=3.11", "lint")


def test_one_operation_of_a_suite_is_named_with_its_run(log: Log) -> None:
    log.seal_suite("s", "build", "test")
    log.end_operation("s", "build", "passed", diff=DIFF)
    log.end_operation("s", "test", "passed", diff=REVERSE)
    assert find_operation(log.entries, "one", "s/test")[1].diff == REVERSE
    assert find_quarantined(log.entries, "one", "s/build").diff == DIFF
    with pytest.raises(InputError, match="run s: has several operations") as caught:
        find_operation(log.entries, "one", "s")
    assert caught.value.hint == "name one: s/build, s/test"
    with pytest.raises(InputError, match="run s: has no operation 'other'"):
        find_operation(log.entries, "one", "s/other")
    with pytest.raises(InputError, match="diff: 2 operations of run s changed something"):
        find_quarantined(log.entries, "one", "s")


def test_the_only_changed_operation_of_a_suite_is_meant_by_the_run(log: Log) -> None:
    log.seal_suite("s", "build", "test")
    log.end_operation("s", "build", "passed", record="")
    log.end_operation("s", "test", "passed", diff=DIFF)
    assert find_quarantined(log.entries, "one", "s").operation == "test"


def test_a_suite_whose_operations_left_the_same_diff_lands_once(log: Log) -> None:
    log.seal_suite("s", "a", "b")
    log.end_operation("s", "a", "passed", diff=DIFF)
    log.end_operation("s", "b", "passed", diff=DIFF, nonce="sa")
    log.add("apply", "done", nonce="sa", result="applied")
    assert all(item.landed for item in list_quarantined(log.entries, "one"))
