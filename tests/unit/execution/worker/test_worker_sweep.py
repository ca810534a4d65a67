"""The sweep removes what dead controllers of this state folder left, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError, StateError
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, ContainerSpec, VolumeSpec
from harness.execution.worker.sweep import claim_run, controller_lives, state_id, sweep
from harness.model.limits import Limits
from tests.fakes.engine import FAKE_IMAGE, FakeEngine, unreachable


def leave(engine: FakeEngine, run: str, state: str) -> str:
    """Leave a container and its volume, as a killed controller does."""
    labels = {LABEL_RUN: run, LABEL_STATE: state}
    name = f"harness-{run}-{state}"
    engine.create_volume(VolumeSpec(name=name, options={}, labels=labels))
    return engine.create_container(
        ContainerSpec(
            name=name,
            image_id=FAKE_IMAGE,
            unset_env=(),
            argv=(),
            env={},
            uid=1,
            gid=1,
            volume=name,
            limits=Limits(),
            tmp_exec=False,
            labels=labels,
        )
    )


@pytest.mark.fault("L006")
def test_only_dead_runs_of_this_state_folder_are_removed() -> None:
    engine = FakeEngine()
    dead = leave(engine, "dead", "ours")
    living, foreign = leave(engine, "living", "ours"), leave(engine, "dead", "theirs")
    swept = sweep(engine, "ours", lambda run: run == "living")
    assert (swept.runs, swept.containers) == (("dead",), (dead,))
    assert swept.volumes == ("harness-dead-ours",)
    assert set(engine.containers) == {living, foreign}
    assert sweep(engine, "ours", lambda run: run == "living").runs == ()


def test_a_removal_that_fails_is_told_and_tried_again() -> None:
    engine = FakeEngine()
    left = leave(engine, "dead", "ours")
    engine.failing["remove"] = unreachable()
    swept = sweep(engine, "ours", lambda _run: False)
    assert (swept.runs, swept.containers, swept.volumes) == (("dead",), (), ())
    assert len(swept.problems) == 2
    engine.failing.clear()
    assert sweep(engine, "ours", lambda _run: False).containers == (left,)


def test_an_engine_that_is_away_is_an_error() -> None:
    engine = FakeEngine()
    engine.failing["owned"] = unreachable()
    with pytest.raises(EngineUnreachableError):
        sweep(engine, "ours", lambda _run: False)


def test_nothing_is_removed_when_nobody_can_tell_who_lives() -> None:
    engine = FakeEngine()
    leave(engine, "dead", "ours")

    def lives(run: str) -> bool:
        raise StateError(f"{run}: can't be looked at")

    with pytest.raises(StateError):
        sweep(engine, "ours", lives)
    assert len(engine.containers) == len(engine.volumes) == 1


def test_a_run_lives_for_as_long_as_its_claim(tmp_path: Path) -> None:
    assert not controller_lives(tmp_path / "no-such-run")
    with claim_run(tmp_path):
        assert controller_lives(tmp_path)
        with pytest.raises(StateError, match="another controller"), claim_run(tmp_path):
            pass
    assert not controller_lives(tmp_path)


def test_two_state_folders_have_two_ids(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    assert state_id(first) == state_id(first) != state_id(second)
    with pytest.raises(StateError):
        state_id(tmp_path / "c")
