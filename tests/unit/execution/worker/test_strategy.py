"""Which workspace strategy a run gets, and what a copy does when the engine fails around it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.errors import EngineUnreachableError, SandboxUnavailableError
from harness.execution.engine.copies import EngineUsage
from harness.execution.engine.port import EngineInfo
from harness.execution.worker import strategy as module
from harness.execution.worker.operation import Asked, StopRequest, WorkerResult
from harness.execution.worker.run_operation import run_operation
from harness.execution.worker.strategy import (
    MAPPED,
    ON_OVERLAY,
    REMOTE,
    SEEN,
    TOO_LARGE,
    UNSEEN,
    Choice,
    check_strategy,
    choose_strategy,
)
from harness.model.limits import MIB
from harness.model.outcome import classify_outcome
from tests.fakes.bench import SMALL, Bench, fake_bench
from tests.fakes.engine import Exit, FakeEngine, Out, Program, Sleep, Vanish, Write, unreachable

OVERLAY, COPY = Asked("overlay", "policy"), Asked("copy", "recipe")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return fake_bench(tmp_path)


def fake(bench: Bench, *events: Program) -> FakeEngine:
    assert isinstance(bench.engine, FakeEngine)
    bench.engine.programs = lambda _argv: events[0] if events else [Exit(0)]
    return bench.engine


def choose(bench: Bench, asked: Asked | None = None, **info: Any) -> Choice:
    found = dataclasses.replace(bench.engine.info(), **info)
    return choose_strategy(bench.engine, found, bench.operation(("x",), asked=asked))


def test_an_engine_that_is_seen_to_lay_an_overlay_gets_one_and_is_not_asked_again(
    bench: Bench,
) -> None:
    engine = fake(bench)
    assert choose(bench) == Choice(strategy="overlay", reason=SEEN)
    asked = engine.calls.count("create_carrier")
    assert choose(bench) == Choice(strategy="overlay", reason=SEEN)
    assert engine.calls.count("create_carrier") == asked == 1
    assert (engine.containers, engine.volumes) == ({}, {})


@pytest.mark.parametrize("changed", ["engine_id", "version"])
def test_another_engine_is_asked_again(bench: Bench, changed: str) -> None:
    choose(bench)
    choose(bench, None, **{changed: "another"})
    assert fake(bench).calls.count("create_carrier") == 2


def test_a_mark_that_can_not_be_read_is_no_mark(bench: Bench) -> None:
    (bench.folder / "probed").write_text("{")
    assert choose(bench).strategy == "overlay"


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"local": False}, REMOTE),
        ({"rootless": True}, MAPPED),
        ({"security_options": ("name=seccomp", "name=userns")}, MAPPED),
    ],
)
def test_a_known_obstacle_means_a_copy_without_trying(
    bench: Bench, info: dict[str, Any], reason: str
) -> None:
    assert choose(bench, None, **info) == Choice(strategy="copy", reason=reason)
    assert "create_volume" not in fake(bench).calls


def test_a_user_too_large_for_the_engine_means_a_copy(bench: Bench) -> None:
    operation = dataclasses.replace(bench.operation(("x",)), uid=1 << 31)
    choice = choose_strategy(bench.engine, bench.engine.info(), operation)
    assert choice == Choice(strategy="copy", reason=TOO_LARGE)


def test_a_state_folder_on_an_overlay_means_a_copy(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "file_system", lambda _folder: "overlay")
    assert choose(bench) == Choice(strategy="copy", reason=ON_OVERLAY)


@pytest.mark.parametrize("blind", ["reads another disk", "refuses the mount", "writes elsewhere"])
def test_an_engine_that_does_not_see_our_folders_gets_a_copy_and_is_tried_again(
    bench: Bench, blind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = fake(bench)
    if blind == "refuses the mount":
        engine.failing["copy_out"] = SandboxUnavailableError(
            "engine: container.copy-out: no such device"
        )
    elif blind == "reads another disk":
        monkeypatch.setattr(engine, "copy_out", lambda *_, limit: b"x" * (limit > 0))
    else:
        monkeypatch.setattr(engine, "copy_in", lambda *_: None)
    for _ in range(2):
        assert choose(bench) == Choice(strategy="copy", reason=UNSEEN)
    assert engine.calls.count("create_carrier") == 2
    assert (engine.containers, engine.volumes) == ({}, {})
    assert not (bench.folder / "probed").exists()


def test_an_engine_that_does_not_answer_is_no_reason_for_a_copy(bench: Bench) -> None:
    fake(bench).failing["copy_out"] = unreachable("copy_out")
    with pytest.raises(EngineUnreachableError):
        choose(bench)
    assert (fake(bench).containers, fake(bench).volumes) == ({}, {})


def test_who_asks_gets_it_and_stands_in_the_reason(bench: Bench) -> None:
    assert choose(bench, OVERLAY) == Choice(strategy="overlay", reason="the policy asks for it")
    assert choose(bench, COPY) == Choice(strategy="copy", reason="the recipe asks for it")


@pytest.mark.parametrize(
    ("info", "reason"), [({"local": False}, REMOTE), ({"rootless": True}, MAPPED)]
)
def test_an_overlay_that_is_asked_for_and_impossible_is_refused(
    bench: Bench, info: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        SandboxUnavailableError, match=f"the policy asks for the overlay, but {reason}"
    ) as e:
        choose(bench, OVERLAY, **info)
    assert "`workspace: auto` or `copy` in the policy, then seal again" in e.value.hint
    assert "create_volume" not in fake(bench).calls


def test_an_overlay_that_is_asked_for_and_tried_in_vain_is_refused(bench: Bench) -> None:
    fake(bench).failing["copy_out"] = SandboxUnavailableError("engine: refused")
    with pytest.raises(SandboxUnavailableError, match=f"but {UNSEEN}"):
        choose(bench, OVERLAY)


def test_an_engine_for_another_system_is_refused(bench: Bench) -> None:
    info: EngineInfo = dataclasses.replace(bench.engine.info(), os="windows")
    with pytest.raises(SandboxUnavailableError, match="Linux containers, got 'windows'"):
        check_strategy(info, COPY, bench.folder, (1, 1))


# --- a copy, and what fails around it ---


def copy(bench: Bench, program: Program, **limits: int) -> tuple[str, WorkerResult]:
    fake(bench, program)
    operation = bench.operation(("x",), asked=COPY, limits=dataclasses.replace(SMALL, **limits))
    result = run_operation(bench.engine, operation)
    assert (fake(bench).containers, fake(bench).volumes) == ({}, {})
    return str(classify_outcome(result.facts)), result


def test_what_fails_on_the_way_in_raises_and_leaves_nothing(bench: Bench) -> None:
    for call in ("create_carrier", "copy_in"):
        engine = fake(bench)
        engine.failing = {call: unreachable(call)}
        with pytest.raises(EngineUnreachableError, match=call):
            run_operation(engine, bench.operation(("x",), asked=COPY))
        assert (engine.containers, engine.volumes, "start" in engine.calls) == ({}, {}, False)


def test_what_fails_on_the_way_out_is_kept_as_the_trouble(bench: Bench) -> None:
    fake(bench).failing["stream_out"] = unreachable("stream_out")
    outcome, result = copy(bench, [Write("a", b"a")])
    assert outcome == "passed"  # by the facts alone; the trouble makes an infra-failure of it
    assert "stream_out" in str(result.trouble)


def test_a_worker_removed_from_outside_still_gives_back_what_it_left(bench: Bench) -> None:
    outcome, result = copy(bench, [Write("a", b"a"), Vanish()])
    assert outcome == "infra-failure(the container was removed from outside)"
    assert (result.upper / "a").read_bytes() == b"a"


def test_a_copy_is_bounded_while_it_runs_and_at_its_end(bench: Bench) -> None:
    big: Program = [Write("big", bytes(6 * MIB)), Sleep(30)]
    assert copy(bench, big, workspace_bytes=4 * MIB)[0] == "disk-limit"
    assert copy(bench, big[:1], workspace_bytes=4 * MIB)[0] == "disk-limit"


def test_an_engine_that_counts_no_volume_says_so_in_the_record(bench: Bench) -> None:
    fake(bench).counts_volumes = False
    outcome, result = copy(bench, [Sleep(1.3)])
    assert (outcome, result.observed["workspaceWatch"]) == ("passed", "unavailable")


@pytest.mark.parametrize(
    ("used", "cpu", "peak"),
    [
        (EngineUsage(cpu_ms=7, memory_peak_bytes=9), 7, 9),
        (EngineUsage(cpu_ms=0, memory_peak_bytes=None), 0, "unavailable"),
        (EngineUsage(cpu_ms=None, memory_peak_bytes=0), "unavailable", "unavailable"),
    ],
)
def test_what_the_cgroup_does_not_show_the_engine_is_asked_for(
    bench: Bench, used: EngineUsage, cpu: object, peak: object
) -> None:
    fake(bench).used = used
    usage = copy(bench, [Exit(0)])[1].usage
    assert (usage["cpu_ms"], usage["memory_peak_bytes"]) == (cpu, peak)
    assert (usage["pids_peak"], usage["oom_kills"]) == ("unavailable", "unavailable")


@pytest.mark.parametrize(
    ("reason", "kind"), [("interrupt", "interrupted"), ("cancel", "cancelled")]
)
def test_a_stop_while_the_files_go_over_means_that_nothing_starts(
    bench: Bench, reason: Literal["interrupt", "cancel"], kind: str
) -> None:
    engine, stop = fake(bench, [Out(b"never")]), StopRequest()
    stop.ask(reason)
    result = run_operation(engine, bench.operation(("x",), asked=COPY), stop=stop)
    assert (str(classify_outcome(result.facts)), result.trouble) == (kind, None)
    assert "start" not in engine.calls
    assert list(result.upper.iterdir()) == []
    assert (engine.containers, engine.volumes) == ({}, {})
