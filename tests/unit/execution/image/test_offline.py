from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SandboxUnavailableError
from harness.execution.image.offline import run_offline
from harness.store.state import StateFolder
from tests.fakes.engine import FAKE_IMAGE
from tests.fakes.image_engine import FakeImageEngine


def run(engine: FakeImageEngine, tmp_path: Path, *, seconds: float) -> bytes:
    return run_offline(
        engine,
        FAKE_IMAGE,
        ("program",),
        what="a test",
        state=StateFolder(tmp_path),
        log=tmp_path / "log",
        seconds=seconds,
    )


def test_output_is_kept_and_the_container_is_gone(tmp_path: Path) -> None:
    engine = FakeImageEngine()
    assert run(engine, tmp_path, seconds=10) == b""
    assert (tmp_path / "log").read_bytes() == b"$ a test\nwhat the program printed\n"
    assert engine.builds == {}


def test_a_program_that_is_too_slow_is_ended_and_its_container_removed(tmp_path: Path) -> None:
    engine = FakeImageEngine()
    with pytest.raises(SandboxUnavailableError, match="a test: is too slow") as caught:
        run(engine, tmp_path, seconds=0)
    assert str(tmp_path / "log") in caught.value.hint
    assert engine.builds == {}


def test_a_container_that_is_lost_is_no_success(tmp_path: Path) -> None:
    class Losing(FakeImageEngine):
        def start(self, container: str) -> None:
            self.builds.pop(container)

    with pytest.raises(SandboxUnavailableError, match="its container was lost"):
        run(Losing(), tmp_path, seconds=10)


def test_what_a_killed_build_left_under_the_same_name_is_removed_first(tmp_path: Path) -> None:
    engine = FakeImageEngine()
    run(engine, tmp_path, seconds=10)
    assert engine.calls.index("remove") < engine.calls.index("create_build_container")
