"""The engine port: what every engine must do, on the fake and on a real one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from harness.errors import ImageMissingError, SandboxUnavailableError
from harness.execution.engine.copies import CarrierSpec
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    Chunk,
    ContainerSpec,
    Owned,
    Pause,
    VolumeSpec,
)
from harness.execution.snapshot.contents import Content
from harness.execution.worker.archive_reader import ArchiveReader
from harness.execution.worker.archive_writer import write_archive
from harness.execution.worker.protocol import END, GO, FrameReader, init_arguments
from harness.execution.worker.workspace import make_workspace, overlay_options
from harness.model.digest import digest_of
from harness.model.recipe import Step
from harness.model.tree import Node
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


def carrier(bench: Bench, name: str) -> str:
    """Make a plain volume and a carrier that reaches it."""
    labels = {LABEL_RUN: "run-1", LABEL_STATE: bench.state}
    volume = f"{bench.state}-{name}"
    bench.engine.create_volume(VolumeSpec(name=volume, options={}, labels=labels))
    spec = CarrierSpec(name=volume, image_id=bench.image, volume=volume, labels=labels)
    return bench.engine.create_carrier(spec)


def archive(bench: Bench) -> Iterator[bytes]:
    """Yield an archive of a folder with one file, in pieces of one byte."""
    data = b"x" * 1000
    made = Content(b"caf\xff", Node("file", "100755", len(data), digest_of(data)), iter((data,)))
    owner = (bench.uid, bench.gid) if bench.real else (os.geteuid(), os.getegid())
    for piece in write_archive([made], root=b"workspace", owner=owner, mtime=315_532_800):
        yield from (piece[at : at + 64] for at in range(0, len(piece), 64))


def test_an_archive_goes_in_and_comes_out_through_a_carrier(bench: Bench) -> None:
    engine, container = bench.engine, carrier(bench, "through")
    owned = engine.owned(bench.state)
    assert (list(owned.containers), list(owned.volumes)) == (
        [container],
        [f"{bench.state}-through"],
    )
    engine.copy_in(container, "/", archive(bench))
    reader = ArchiveReader(engine.stream_out(container, "/workspace"), b"workspace")
    found = [
        (m.path, m.kind, oct(m.mode), len(b"".join(reader.content()))) for m in reader.members()
    ]
    assert found == [(b"", "folder", "0o755", 0), (b"caf\xff", "file", "0o755", 1000)]
    assert engine.volume_bytes(f"{bench.state}-through") == 1000
    assert engine.volume_bytes(f"{bench.state}-none") is None
    with pytest.raises(SandboxUnavailableError):
        next(engine.stream_out(container, "/no/such/path"))


def test_an_error_of_the_archive_s_own_comes_through(bench: Bench) -> None:
    class OwnError(Exception):
        """Somebody asked to stop, say."""

    def broken() -> Iterator[bytes]:
        yield from itertools.islice(archive(bench), 8)
        raise OwnError

    with pytest.raises(OwnError):
        bench.engine.copy_in(carrier(bench, "broken"), "/", broken())


def test_usage_is_a_count_or_not_known(bench: Bench) -> None:
    container = bench.engine.create_container(spec(bench, "usage"))
    connection = bench.engine.attach(container)
    bench.engine.start(container)
    used = bench.engine.usage(container)
    assert used.cpu_ms is None or used.cpu_ms >= 0
    assert used.memory_peak_bytes is None or used.memory_peak_bytes > 0
    assert (used.cpu_ms is not None) == bench.real
    connection.close()
