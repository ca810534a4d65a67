"""The engine port: what every engine must do, on the fake and on a real one."""

from __future__ import annotations

import pytest

from harness.errors import ImageMissingError, SandboxUnavailableError
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    Chunk,
    ContainerSpec,
    Owned,
    Pause,
    VolumeSpec,
)
from harness.execution.worker.protocol import END, GO, FrameReader, init_arguments
from harness.execution.worker.workspace import make_workspace, overlay_options
from harness.model.digest import digest_of
from harness.model.recipe import Step
from tests.fakes.bench import SMALL, Bench
from tests.fakes.engine import FakeEngine, Out

HELLO = Step(name="hello", argv=("echo", "hi"))


def spec(bench: Bench, name: str, *, volume: str = "", run: str = "run-1") -> ContainerSpec:
    return ContainerSpec(
        name=f"{bench.state}-{name}",
        image_id=bench.image,
        unset_env=(),
        argv=init_arguments([HELLO], deadline_ms=9000, grace_ms=100, hold_ms=9000),
        env={"PATH": "/usr/bin:/bin"},
        uid=bench.uid,
        gid=bench.gid,
        volume=volume,
        limits=SMALL,
        tmp_exec=False,
        labels={LABEL_RUN: run, LABEL_STATE: bench.state},
    )


def test_info_names_what_matters(bench: Bench) -> None:
    info = bench.engine.info()
    assert info.version
    assert info.cgroup_version in (1, 2)
    assert info.os == "linux"


def test_an_image_is_found_by_id_only(bench: Bench) -> None:
    assert bench.engine.image(bench.image).image_id == bench.image
    with pytest.raises(ImageMissingError, match="image"):
        bench.engine.image(digest_of(b"no such image"))


def test_a_container_of_a_missing_image_is_refused_and_nothing_is_made(bench: Bench) -> None:
    made = spec(bench, "missing")
    missing = ContainerSpec(
        **{name: getattr(made, name) for name in ContainerSpec.__slots__ if name != "image_id"},
        image_id=digest_of(b"no such image"),
    )
    with pytest.raises(ImageMissingError):
        bench.engine.create_container(missing)
    assert bench.engine.owned(bench.state) == Owned(containers={}, volumes={})


def test_two_containers_can_not_share_a_name(bench: Bench) -> None:
    bench.engine.create_container(spec(bench, "twice"))
    with pytest.raises(SandboxUnavailableError):
        bench.engine.create_container(spec(bench, "twice"))


def test_a_container_lives_from_created_to_gone(bench: Bench) -> None:
    engine = bench.engine
    if isinstance(engine, FakeEngine):
        engine.programs = lambda _argv: [Out(b"hi\n")]
    container = engine.create_container(spec(bench, "life"))
    state = engine.inspect(container)
    assert state is not None
    assert (state.status, state.running, state.image_id) == ("created", False, bench.image)
    connection = engine.attach(container)
    engine.start(container)
    frames, reader, said = "", FrameReader(), b""
    while "F" not in frames:
        received = connection.receive(5)
        assert isinstance(received, Chunk)
        for frame in reader.feed(received.data):
            frames += frame.type
            said += frame.data if frame.type == "O" else b""
            if frame.type == "R":
                connection.send(GO)
    assert frames == "RSOXF"
    assert said == b"hi\n"
    assert connection.receive(0.05) is Pause.SILENCE
    state = engine.inspect(container)
    assert state is not None
    assert state.running
    connection.send(END)
    state = engine.wait(container, 5)
    assert state is not None
    assert (state.running, state.exit_code) == (False, 0)
    assert connection.receive(5) is Pause.END
    connection.close()
    engine.remove(container)
    assert engine.inspect(container) is None


def test_wait_gives_up_when_the_time_is_up(bench: Bench) -> None:
    container = bench.engine.create_container(spec(bench, "wait"))
    connection = bench.engine.attach(container)
    bench.engine.start(container)
    state = bench.engine.wait(container, 0.3)
    assert state is not None
    assert state.running
    bench.engine.kill(container)
    state = bench.engine.wait(container, 5)
    assert state is not None
    assert (state.running, state.exit_code) == (False, 137)
    connection.close()


def test_what_is_gone_already_counts_as_removed(bench: Bench) -> None:
    container = bench.engine.create_container(spec(bench, "gone"))
    for _ in range(2):
        bench.engine.remove(container)
        bench.engine.kill(container)
        bench.engine.remove_volume(f"{bench.state}-none")
    assert bench.engine.inspect(container) is None
    assert bench.engine.wait(container, 1) is None


def test_only_what_carries_our_labels_is_owned(bench: Bench) -> None:
    engine = bench.engine
    labels = {LABEL_RUN: "run-7", LABEL_STATE: bench.state}
    volume = f"{bench.state}-volume"
    engine.create_volume(VolumeSpec(name=volume, options={}, labels=labels))
    container = engine.create_container(spec(bench, "owned", run="run-7"))
    owned = engine.owned(bench.state)
    assert owned == Owned(containers={container: "run-7"}, volumes={volume: "run-7"})
    assert engine.owned(bench.state + "0") == Owned(containers={}, volumes={})


def test_copying_out_of_a_created_container_mounts_its_volume(bench: Bench) -> None:
    engine = bench.engine
    workspace = make_workspace(bench.folder / "ws", uid=bench.uid, gid=bench.gid)
    name = f"{bench.state}-copy"
    labels = {LABEL_RUN: "run-1", LABEL_STATE: bench.state}
    options = overlay_options([bench.layer({"a": b"1"})], workspace)
    engine.create_volume(VolumeSpec(name=name, options=options, labels=labels))
    container = engine.create_container(spec(bench, "copy", volume=name))
    assert len(engine.copy_out(container, "/workspace", limit=1 << 20)) >= 512
    with pytest.raises(SandboxUnavailableError, match="larger than 100"):
        engine.copy_out(container, "/workspace", limit=100)
    with pytest.raises(SandboxUnavailableError):
        engine.copy_out(container, "/no/such/path", limit=1 << 20)
