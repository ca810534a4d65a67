"""What surrounds a payload fails: never a verdict on it, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import (
    EngineUnreachableError,
    HarnessError,
    ImageMissingError,
    SandboxUnavailableError,
    VerificationError,
)
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker import session as session_module
from harness.execution.worker.operation import Asked, Operation, operation_from_seal
from harness.execution.worker.run_operation import run_operation
from harness.model.digest import digest_of
from harness.model.image import Image
from harness.model.limits import Isolation, Limits
from harness.model.seal import FIXED_ENV, Seal
from harness.store.state import StateFolder
from tests.fakes.bench import Bench, Ran, Scenario, fake_bench
from tests.fakes.engine import (
    FAKE_IMAGE,
    Die,
    Event,
    Exit,
    FakeEngine,
    InitDies,
    Out,
    Sleep,
    Vanish,
    fake_image,
    unreachable,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return fake_bench(tmp_path)


def fake(bench: Bench) -> FakeEngine:
    assert isinstance(bench.engine, FakeEngine)
    return bench.engine


def run(bench: Bench, *events: Event) -> Ran:
    return bench.run(Scenario(code="x", events=events))


@pytest.mark.fault("L018")
def test_a_container_removed_from_outside_is_no_verdict(bench: Bench) -> None:
    ran = run(bench, Out(b"before\n"), Vanish())
    assert str(ran.outcome) == "infra-failure(the container was removed from outside)"
    assert ran.out == b"before\n"


def test_an_init_that_dies_is_no_verdict(bench: Bench) -> None:
    ran = run(bench, InitDies(70))
    assert str(ran.outcome) == "infra-failure(init ended with status 70 before its report)"


@pytest.mark.fault("L015")
def test_the_engine_s_oom_flag_counts(bench: Bench) -> None:
    assert str(run(bench, Die(9, oom=True)).outcome) == "oom"


def test_an_engine_lost_in_mid_run_is_no_verdict(bench: Bench) -> None:
    def lose(_stream: str, _data: bytes) -> None:
        fake(bench).failing["receive"] = unreachable()

    ran = bench.run(Scenario(code="x", events=[Out(b"1"), Sleep(1), Exit(3)]), sink=lose)
    assert str(ran.outcome) == "infra-failure(connection to the engine was lost)"
    assert ran.out == b"1"


def test_an_init_that_never_gets_ready_is_no_verdict(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "READY_SECONDS", 0.0)
    monkeypatch.setattr(session_module, "TICK_SECONDS", 0.0)
    fake(bench).starts = False
    ran = run(bench, Exit(0))
    assert str(ran.outcome) == "infra-failure(init did not get ready)"


@pytest.mark.fault("L004")
@pytest.mark.parametrize("call", ["remove", "remove_volume"])
def test_a_failed_cleanup_is_noted_and_the_result_stands(bench: Bench, call: str) -> None:
    fake(bench).programs = lambda _argv: [Exit(0)]
    run_operation(bench.engine, bench.operation(("x",)))
    fake(bench).failing[call] = unreachable(call)
    result = run_operation(bench.engine, bench.operation(("x",)))
    assert f"cleanup: engine: {call}: no answer" in result.problems
    assert result.facts.steps[0].exit == 0


@pytest.mark.parametrize("call", ["create_volume", "create_container", "attach", "start"])
def test_what_fails_before_the_start_raises_and_leaves_nothing(bench: Bench, call: str) -> None:
    fake(bench).failing[call] = unreachable(call)
    with pytest.raises(EngineUnreachableError, match=call):
        run_operation(bench.engine, bench.operation(("x",)))
    assert fake(bench).containers == {}
    assert fake(bench).volumes == {}


def test_a_creation_whose_answer_was_lost_leaves_nothing(bench: Bench) -> None:
    fake(bench).answers_create = False
    with pytest.raises(EngineUnreachableError):
        run_operation(bench.engine, bench.operation(("x",)))
    assert len(fake(bench).created) == 1
    assert fake(bench).containers == {}
    assert fake(bench).volumes == {}


def refuse(bench: Bench, error: type[HarnessError], match: str) -> None:
    with pytest.raises(error, match=match):
        run_operation(bench.engine, bench.operation(("x",)))
    assert fake(bench).containers == {}
    assert "start" not in fake(bench).calls


def test_another_image_than_the_sealed_one_is_refused_before_the_start(bench: Bench) -> None:
    fake(bench).made_from = digest_of(b"another image")
    refuse(bench, VerificationError, "image: expected sha256:")


def test_a_limit_that_is_not_enforced_is_refused_before_the_start(bench: Bench) -> None:
    fake(bench).host_config = {"MemorySwap": -1}
    refuse(bench, SandboxUnavailableError, "does not enforce every limit")


def test_a_missing_image_is_refused(bench: Bench) -> None:
    fake(bench).images.clear()
    refuse(bench, ImageMissingError, "does not have it")


def test_the_image_s_own_environment_is_taken_out(bench: Bench) -> None:
    engine = fake(bench)
    engine.images[FAKE_IMAGE] = fake_image(FAKE_IMAGE, env=("LEAK=1", "PATH=/evil"))
    engine.programs = lambda _argv: [Exit(0)]
    run_operation(engine, bench.operation(("x",)))
    assert engine.created[0].unset_env == ("LEAK", "PATH")


def seal(*, recipe: str = "auto", policy: str = "auto") -> Seal:
    return Seal(
        recipe={"steps": [{"name": "a", "argv": ["a", "b"], "script": False}], "workspace": recipe},
        snapshot=digest_of(b"s"),
        image=Image(
            name="i", image_id=FAKE_IMAGE, platform="linux/amd64", definition=digest_of(b"d")
        ),
        isolation=Isolation(limits=Limits(pids=33), tmp_exec=False, workspace=policy).to_json(),
        env=FIXED_ENV,
    )


def from_seal(folder: Path, sealed: Seal) -> Operation:
    state = StateFolder(folder)
    return operation_from_seal(
        sealed,
        run="r",
        state=state,
        snapshot=SnapshotView(state, sealed.snapshot),
        folder=folder,
        uid=1,
        gid=2,
    )


def test_an_operation_is_what_its_seal_says(tmp_path: Path) -> None:
    made = from_seal(tmp_path, seal())
    assert [(step.argv, step.timeout_ms, step.allowed_exits) for step in made.steps] == [
        (("a", "b"), 0, (0,))
    ]
    assert (made.limits, made.tmp_exec) == (Limits(pids=33), False)
    assert (made.image, made.env) == (seal().image, dict(FIXED_ENV))
    assert made.asked == Asked()


def test_a_step_that_init_does_not_end_is_ended_by_the_host(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "STEP_SECONDS", 0.1)
    fake(bench).init_is_late = True
    ran = bench.run(Scenario(code="x", events=[Sleep(60)], timeout_ms=100))
    assert str(ran.outcome) == "timeout(step 1: scenario 1)"
    assert ran.result.facts.steps[0].timed_out


def test_an_init_that_does_not_know_its_arguments_is_too_old(bench: Bench) -> None:
    late = Scenario(code="x", events=[InitDies(64)], timeout_ms=100)
    assert str(bench.run(late).outcome) == (
        "infra-failure(the image's init knows no step timeouts or exit codes: make the image again)"
    )


def test_the_policy_s_strategy_comes_before_the_recipe_s(tmp_path: Path) -> None:
    assert from_seal(tmp_path, seal(recipe="copy")).asked == Asked("copy", "recipe")
    assert from_seal(tmp_path, seal(policy="copy")).asked == Asked("copy", "policy")
    both = seal(recipe="overlay", policy="overlay")
    assert from_seal(tmp_path, both).asked == Asked("overlay", "policy")
