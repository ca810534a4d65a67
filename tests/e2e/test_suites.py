"""Plans of several operations: one approval, a record and a diff each, looked at from elsewhere."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from tests.e2e.driver import SECONDS, Bed, refused, untouched
from tests.e2e.project import WRITABLE, approve, recipe, write
from tests.e2e.test_interrupt import begin_slow, end_of

pytestmark = pytest.mark.docker


def add_recipe(bed: Bed, name: str, text: str) -> None:
    write(bed.project / "recipes" / f"{name}.yaml", text.encode())


def run_suite(bed: Bed, *names: str, code: int = 0) -> dict[str, Any]:
    """Seal recipes as one plan, approve its one hash, run it, and return the run's JSON."""
    plan = bed("seal", *names, "--json").json()["plan"]
    approve(bed, plan)
    with untouched(bed):
        ran: dict[str, Any] = bed("run", plan, "--json", code=code).json()
    return ran


def outcomes(ran: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["outcome"]["text"] for item in ran["operations"]}


def test_one_approval_runs_several_recipes_and_each_leaves_its_own_diff(bed: Bed) -> None:
    ran = run_suite(bed, "few", "nothing", "fail", code=1)
    run_id = ran["run"]
    assert outcomes(ran) == {"few": "passed", "nothing": "passed", "fail": "failed(3)"}
    assert (ran["kind"], ran["exitCode"]) == ("failed", 1)
    records = {item["name"]: item["record"] for item in ran["operations"]}
    assert {record["run"] for record in records.values()} == {run_id}
    assert [name for name, record in records.items() if record["operation"] != name] == []
    assert len({record["seal"] for record in records.values()}) == len(records)
    verbs = [verb for verb in bed.verbs() if verb.startswith(("run", "quarantine"))]
    assert verbs == ["run.intent", *["quarantine.done", "run.done"] * 3]
    assert "2 of 3 passed" in bed("runs", "list").out
    refused(bed, "diff", run_id, code=2, says="2 operations of run")
    few = bed("diff", f"{run_id}/few", "--json").json()["diff"]
    approve(bed, few)
    assert "applied: 6 changed paths" in bed("apply", few).out
    assert "+# From a run that failed" in bed("diff", f"{run_id}/fail").out
    refused(bed, "runs", "logs", run_id, code=2, says="has several operations")


def test_what_a_recipe_needs_comes_first_and_what_fails_stops_what_needs_it(bed: Bed) -> None:
    add_recipe(bed, "late", recipe("nothing", more="needs: [fail]\n"))
    add_recipe(bed, "later", recipe("nothing", more="needs: [late, few]\n"))
    shown = bed("seal", "later").out
    places = [shown.index(f"{name} (build)") for name in ("fail", "late", "few", "later")]
    assert places.index(max(places)) == 3
    assert "late, few to pass first" in shown
    ran = run_suite(bed, "later", code=1)
    found = outcomes(ran)
    assert found["late"] == "skipped(needs fail)"
    assert found["later"] == "skipped(needs late)"
    assert found["few"] == "passed"
    started = [item["name"] for item in ran["operations"] if item["record"]]
    assert sorted(started) == ["fail", "few"], "what is skipped gets no container"


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ("[b]", "needs: a circle: "),
        ("[nowhere]", "'nowhere' is no recipe of this project"),
    ],
)
def test_recipes_that_need_each_other_or_nothing_known_are_not_sealed(
    bed: Bed, needs: str, says: str
) -> None:
    add_recipe(bed, "a", recipe("nothing", more=f"needs: {needs}\n"))
    add_recipe(bed, "b", recipe("nothing", more="needs: [a]\n"))
    refused(bed, "seal", "b", code=2, says=says)
    assert bed.verbs() == []


def test_recipes_under_two_policies_make_no_plan(bed: Bed) -> None:
    policy = (bed.project / "policies" / "default.yaml").read_bytes()
    write(bed.project / "policies" / "other.yaml", policy)
    add_recipe(bed, "other", recipe("nothing", policy="other"))
    refused(bed, "seal", "few", "other", code=2, says="expected recipes under one policy")


def test_operations_that_left_the_same_diff_are_approved_and_land_once(bed: Bed) -> None:
    add_recipe(bed, "twin", recipe("few", more=WRITABLE))
    plan = bed("seal", "few", "twin", "--json").json()["plan"]
    approve(bed, plan)
    told = bed("run", plan).out
    assert told.count("next: harness diff") == told.count("then: harness approve") == 1
    first, second = bed("runs", "list", "--json").json()[0]["operations"]
    assert first["diff"] == second["diff"]
    approve(bed, first["diff"])
    bed("apply", first["diff"])
    refused(bed, "apply", second["diff"], code=4, says="landed already")


def test_a_run_is_followed_and_cancelled_from_another_terminal(bed: Bed) -> None:
    with untouched(bed):
        _, process = begin_slow(bed)
        (run,) = bed("runs", "list", "--json").json()
        assert run["operations"][0]["kind"] == "running"
        one = f"{run['run']}/slow"
        assert "is followed as a whole" in bed("runs", "logs", "--follow", one, code=2).err
        follower = bed.start("runs", "logs", "--follow", run["run"])
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"begun\n", "a late one sees it from its beginning"
        early = bed.start("runs", "logs", "--follow", run["run"])
        early.send_signal(signal.SIGINT)
        assert end_of(early)[0] in (130, -signal.SIGINT)
        began = time.monotonic()
        ended = bed("runs", "cancel", run["run"], "--json").json()
        assert (ended["kind"], time.monotonic() - began < 20) == ("cancelled", True)
        assert end_of(process)[0] == 130
        code, out, err = end_of(follower)
        assert (code, out) == (0, "")
        assert f"run {run['run']}: cancelled" in err
    refused(bed, "runs", "cancel", run["run"], code=2, says="is over; it ended as cancelled")
    refused(bed, "runs", "logs", "-f", run["run"], code=2, says="is over")
    assert bed("runs", "logs", run["run"]).out == "begun\n"
    assert list((bed.state / "runs").iterdir()) == []


def test_what_did_not_begin_when_a_suite_is_cancelled_is_cancelled_too(bed: Bed) -> None:
    plan = bed("seal", "slow", "few", "--json").json()["plan"]
    approve(bed, plan)
    process = bed.start("run", plan)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    (run,) = bed("runs", "list", "--json").json()
    assert [item["kind"] for item in run["operations"]] == ["running", "waiting"]
    bed("runs", "cancel", run["run"])
    assert end_of(process)[0] == 130
    (run,) = bed("runs", "list", "--json").json()
    assert [item["outcome"] for item in run["operations"]] == [
        "cancelled",
        "cancelled(before it began)",
    ]


def test_a_suite_whose_controller_was_killed_keeps_what_had_ended(bed: Bed) -> None:
    plan = bed("seal", "few", "slow", "nothing", "--json").json()["plan"]
    approve(bed, plan)
    process = bed.start("run", plan)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    process.communicate(timeout=SECONDS)
    (run,) = bed("runs", "list", "--json").json()
    assert "its controller died" in bed("runs", "cancel", run["run"], code=2).err
    followed = bed("runs", "logs", "--follow", run["run"])
    assert "its controller died before it ended" in followed.err
    assert "recorded as interrupted" in bed("seal", "few").err
    (run,) = bed("runs", "list", "--json").json()
    assert [item["kind"] for item in run["operations"]] == ["passed", "interrupted", "interrupted"]
    assert bed("diff", f"{run['run']}/few", "--stat").out
    assert list((bed.state / "runs").iterdir()) == []
