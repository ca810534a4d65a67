"""An engine in memory, with an init that speaks the real protocol and programs that are data.

It keeps the rules of `port.Engine` (the contract suite runs on it and on a real engine): ids are
opaque, what is gone already counts as removed, bytes are never lost, every answer comes at once.
Programs are found by their argv; each is a list of events. Nothing is isolated here: what a
worker may do is shown on a real engine only.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from harness.errors import EngineUnreachableError, ImageMissingError, SandboxUnavailableError
from harness.execution.engine.copies import CarrierSpec, EngineUsage
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    Chunk,
    ContainerSpec,
    ContainerState,
    EngineInfo,
    ImageInfo,
    Owned,
    Pause,
    VolumeSpec,
)
from harness.execution.engine.spec import container_request
from harness.execution.worker.protocol import MAX_PAYLOAD, Frame, FrameType, encode_frame
from harness.model.digest import Digest, digest_of
from harness.model.recipe import PASSING, Step
from tests.fakes.volumes import FakeVolume

FAKE_IMAGE = digest_of(b"the worker image of the fake engine")
GRACE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Out:
    """The program writes to stdout."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Err:
    """The program writes to stderr."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """The program writes a file below the workspace."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Sleep:
    """The program waits; a SIGTERM ends it unless it ignores them."""

    seconds: float
    ignores_term: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """The program ends with a status; a program without one exits with 0."""

    code: int
    exec_errno: int = 0


@dataclass(frozen=True, slots=True)
class Die:
    """The program ends by a signal."""

    signal: int
    oom: bool = False


@dataclass(frozen=True, slots=True)
class Vanish:
    """Somebody removes the container from outside."""


@dataclass(frozen=True, slots=True)
class InitDies:
    """Init ends without a report."""

    code: int


Event = Out | Err | Write | Sleep | Exit | Die | Vanish | InitDies
Program = Sequence[Event]
Programs = Callable[[tuple[str, ...]], Program]


def no_programs(argv: tuple[str, ...]) -> Program:
    """Every program is missing, as on an empty image."""
    del argv
    return [Exit(127, exec_errno=2)]


@dataclass(slots=True)
class _Container:
    spec: ContainerSpec | CarrierSpec
    status: str = "created"
    exit_code: int = 0
    oom_killed: bool = False
    connection: FakeConnection | None = None


@dataclass(slots=True)
class _Heard:
    """What the controller said to init so far."""

    go: bool = False
    term: bool = False
    kill: bool = False
    end: bool = False
    gone: bool = False
    at: float = field(default_factory=time.monotonic)


class FakeEngine:
    """Implements `port.Engine`.

    Args:
        programs: the program of each argv.
        images: what is there, besides `FAKE_IMAGE`.

    Attributes:
        calls: names of the methods called.
        created: the specs of all containers ever made.
        failing: what a method (or `send`, `receive`) raises from now on.
        starts: whether a started container's init ever runs.
        init_is_late: whether init lets a step run beyond its timeout.
        answers_create: whether the answer to a creation arrives.
        made_from: the image that containers claim to be made from.
        used: what it counted for every container.
        counts_volumes: whether it says how large a volume is.
        host_config: what read-backs say instead of what was asked for.
    """

    def __init__(
        self, programs: Programs = no_programs, *, images: Mapping[Digest, ImageInfo] | None = None
    ) -> None:
        self.programs = programs
        self.images = {FAKE_IMAGE: fake_image(FAKE_IMAGE), **(images or {})}
        self.volumes: dict[str, FakeVolume] = {}
        self.containers: dict[str, _Container] = {}
        self.calls: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.created: list[ContainerSpec] = []
        self.local = True
        self.starts = True
        self.init_is_late = False
        self.answers_create = True
        self.made_from: Digest | None = None
        self.used = EngineUsage(cpu_ms=None, memory_peak_bytes=None)
        self.counts_volumes = True
        self.host_config: dict[str, object] = {}

    def _call(self, name: str) -> None:
        """Note a call; fail it when a test asked for that."""
        self.calls.append(name)
        if name in self.failing:
            raise self.failing[name]

    def info(self) -> EngineInfo:
        self._call("info")
        return EngineInfo(
            engine_id="fake",
            version="fake",
            api_version="1.41",
            cgroup_version=2,
            storage_driver="fake",
            security_options=(),
            rootless=False,
            local=self.local,
            os="linux",
            architecture="amd64",
        )

    def image(self, image_id: Digest) -> ImageInfo:
        self._call("image")
        if image_id not in self.images:
            raise ImageMissingError("image: the engine does not have it")
        return self.images[image_id]

    def create_volume(self, volume: VolumeSpec) -> None:
        self._call("create_volume")
        self.volumes[volume.name] = FakeVolume(volume)

    def remove_volume(self, name: str) -> None:
        self._call("remove_volume")
        if any(container.spec.volume == name for container in self.containers.values()):
            raise SandboxUnavailableError("engine: volume.remove: volume is in use")
        volume = self.volumes.pop(name, None)
        if volume is not None:
            volume.remove()

    def create_container(self, container: ContainerSpec) -> str:
        self._call("create_container")
        self.created.append(container)
        name = self._make(container)
        if not self.answers_create:
            raise unreachable("create_container")
        return name

    def create_carrier(self, carrier: CarrierSpec) -> str:
        self._call("create_carrier")
        return self._make(carrier)

    def _make(self, container: ContainerSpec | CarrierSpec) -> str:
        if container.image_id not in self.images:
            raise ImageMissingError("image: the engine does not have it")
        if any(known.spec.name == container.name for known in self.containers.values()):
            raise SandboxUnavailableError("engine: container.create: name is in use")
        name = secrets.token_hex(32)
        self.containers[name] = _Container(container)
        return name

    def attach(self, container: str) -> FakeConnection:
        self._call("attach")
        connection = FakeConnection(self, container)
        self._get(container).connection = connection
        return connection

    def start(self, container: str) -> None:
        self._call("start")
        if self.starts:
            self._get(container).status = "running"

    def inspect(self, container: str) -> ContainerState | None:
        self._call("inspect")
        found = self.containers.get(container)
        if found is None:
            return None
        assert isinstance(found.spec, ContainerSpec)
        request = container_request(found.spec)
        return ContainerState(
            container=container,
            image_id=self.made_from or found.spec.image_id,
            status=found.status,
            running=found.status == "running",
            exit_code=found.exit_code,
            oom_killed=found.oom_killed,
            error="",
            pid=0,
            labels=found.spec.labels,
            host_config={**request["HostConfig"], **self.host_config},
        )

    def wait(self, container: str, seconds: float) -> ContainerState | None:
        self._call("wait")
        until = time.monotonic() + seconds
        found = self.containers.get(container)
        while found and found.status == "running" and time.monotonic() < until:
            if found.connection:
                found.connection.step()
            time.sleep(0.005)
            found = self.containers.get(container)
        return self.inspect(container)

    def kill(self, container: str) -> None:
        self._call("kill")
        found = self.containers.get(container)
        if found and found.status == "running":
            found.status, found.exit_code = "exited", 137

    def remove(self, container: str) -> None:
        self._call("remove")
        self.containers.pop(container, None)

    def copy_out(self, container: str, path: str, *, limit: int) -> bytes:
        self._call("copy_out")
        archive = self._volume(container).pack(path)
        if len(archive) > limit:
            raise SandboxUnavailableError(f"engine: archive is larger than {limit} bytes")
        return archive

    def copy_in(self, container: str, path: str, tar: BinaryIO | Iterable[bytes]) -> None:
        self._call("copy_in")
        self._volume(container).unpack(path, tar)

    def stream_out(self, container: str, path: str) -> Iterator[bytes]:
        self._call("stream_out")
        archive = self._volume(container).pack(path)
        yield from (archive[start : start + 700] for start in range(0, len(archive), 700))

    def usage(self, container: str) -> EngineUsage:
        self._call("usage")
        self._get(container)
        return self.used

    def volume_bytes(self, name: str) -> int | None:
        self._call("volume_bytes")
        return self.volumes[name].size() if self.counts_volumes and name in self.volumes else None

    def _volume(self, container: str) -> FakeVolume:
        return self.volumes[self._get(container).spec.volume]

    def owned(self, state: str) -> Owned:
        self._call("owned")

        def ours(labels: Mapping[str, str]) -> bool:
            return LABEL_RUN in labels and labels.get(LABEL_STATE) == state

        return Owned(
            containers={
                name: found.spec.labels[LABEL_RUN]
                for name, found in self.containers.items()
                if ours(found.spec.labels)
            },
            volumes={
                name: volume.spec.labels[LABEL_RUN]
                for name, volume in self.volumes.items()
                if ours(volume.spec.labels)
            },
        )

    def _get(self, container: str) -> _Container:
        if container not in self.containers:
            raise SandboxUnavailableError("engine: no such container")
        return self.containers[container]

    def upper(self, container: str) -> Path:
        """Return where a container's writes land."""
        return self._volume(container).upper


class FakeConnection:
    """Implements `port.Connection`; runs the fake init a little at each `receive`."""

    def __init__(self, engine: FakeEngine, container: str) -> None:
        self._engine, self._container = engine, container
        self._heard = _Heard()
        self._init = _fake_init(engine, container, self._heard)
        self._ready: list[Chunk] = []
        self._ended = False

    def send(self, data: bytes) -> None:
        if "send" in self._engine.failing:
            raise self._engine.failing["send"]
        for line in data.decode("ascii").splitlines():
            setattr(self._heard, line, True)
        self._heard.at = time.monotonic()

    def receive(self, seconds: float) -> Chunk | Pause:
        until = time.monotonic() + seconds
        while not self._ready:
            self.step()
            if self._ended and not self._ready:
                return Pause.END
            if not self._ready and time.monotonic() >= until:
                return Pause.SILENCE
            if not self._ready:
                time.sleep(0.002)
        return self._ready.pop(0)

    def step(self) -> None:
        """Let init go on until it says something or waits."""
        if "receive" in self._engine.failing:
            raise self._engine.failing["receive"]
        found = self._engine.containers.get(self._container)
        if found is None or found.status == "exited":
            self._ended = True
        elif found.status == "running":
            data = next(self._init, None)
            if data:
                self._ready.append(Chunk(stream="stdout", data=data))
            elif data is None:
                found.status = "exited"

    def close(self) -> None:
        self._heard.gone = True


def fake_image(image_id: Digest, *, env: tuple[str, ...] = ()) -> ImageInfo:
    """Return an image as the fake engine has it."""
    return ImageInfo(
        image_id=image_id,
        os="linux",
        architecture="amd64",
        labels={},
        env=env,
        names=(),
        size=1,
    )


def _frame(kind: FrameType, data: bytes = b"") -> bytes:
    return encode_frame(Frame(kind, data))


def _fake_init(engine: FakeEngine, container: str, heard: _Heard) -> Generator[bytes, None, None]:
    """Yield what init would write; empty bytes while it waits."""
    spec = engine.containers[container].spec
    assert isinstance(spec, ContainerSpec)
    steps, numbers = _parse_init(spec.argv)
    yield _frame("R")
    while not heard.go and not heard.gone:
        yield b""
    deadline = time.monotonic() + numbers["--deadline-ms"] / 1000
    for index, step in enumerate(steps):
        yield _frame("S", b"%d" % index)
        started = time.monotonic()
        timeout_ms = 0 if engine.init_is_late else step.timeout_ms
        until = started + timeout_ms / 1000 if timeout_ms else math.inf
        ended = yield from _run(engine, container, step.argv, heard, _Ends(deadline, until))
        if ended is None:
            return
        status = (
            b'"exit":%d,"signal":null' if isinstance(ended, Exit) else b'"exit":null,"signal":%d'
        )
        value = ended.code if isinstance(ended, Exit) else ended.signal
        errno = ended.exec_errno if isinstance(ended, Exit) else 0
        duration = int((time.monotonic() - started) * 1000)
        timed_out = time.monotonic() >= until
        members = b'{"index":%d,' + status + b',"execErrno":%d,"durationMs":%d'
        members += b',"timedOut":true}' if timed_out else b"}"
        yield _frame("X", members % (index, value, errno, duration))
        is_allowed = isinstance(ended, Exit) and ended.code in step.allowed_exits and not errno
        if not is_allowed or timed_out or heard.term or heard.kill:
            break
    yield _frame("F")
    while not heard.end and not heard.gone:
        yield b""


def _run(
    engine: FakeEngine,
    container: str,
    argv: tuple[str, ...],
    heard: _Heard,
    ends: _Ends,
) -> Generator[bytes, None, Exit | Die | None]:
    """Run one program; return how it ended, or None when init is gone with it."""
    found = engine.containers[container]
    for event in engine.programs(argv):
        ended: Exit | Die | None = Die(9) if heard.kill else None
        match event:
            case Out(data):
                yield from _pieces("O", data)
            case Err(data):
                yield from _pieces("E", data)
            case Write(path, data):
                target = engine.upper(container) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            case Sleep():
                ended = yield from _sleep(event, heard, ends)
            case Exit() | Die():
                found.oom_killed = isinstance(event, Die) and event.oom
                ended = event
            case Vanish():
                del engine.containers[container]
                return None
            case InitDies(code):
                found.status, found.exit_code = "exited", code
                return None
        if ended is not None:
            return ended
    return Exit(0)


def _pieces(kind: FrameType, data: bytes) -> Generator[bytes, None, None]:
    for at in range(0, len(data), MAX_PAYLOAD):
        yield _frame(kind, data[at : at + MAX_PAYLOAD])


class _Ends(NamedTuple):
    """When init ends a step: its outer deadline, and the step's own timeout."""

    deadline: float
    step: float


def _sleep(event: Sleep, heard: _Heard, ends: _Ends) -> Generator[bytes, None, Die | None]:
    until = time.monotonic() + event.seconds
    while (now := time.monotonic()) < until:
        asked = min(heard.at if heard.term else math.inf, ends.step)
        if heard.kill or now > asked + GRACE_SECONDS:
            return Die(9)
        if now >= asked and not event.ignores_term:
            return Die(15)
        if now >= ends.deadline:
            yield _frame("T")
            return Die(9)
        yield b""
    return None


def _parse_init(argv: tuple[str, ...]) -> tuple[list[Step], dict[str, int]]:
    """Read init's arguments, as `images/init/init.c` does."""
    steps: list[Step] = []
    numbers: dict[str, int] = {}
    exits = PASSING
    at = 0
    while at < len(argv):
        name, value = argv[at], argv[at + 1]
        at += 2
        if name == "--exits":
            exits = tuple(int(code) for code in value.split(","))
        elif name == "--step":
            words, timeout_ms = argv[at : at + int(value)], numbers.pop("--timeout-ms", 0)
            steps.append(Step(name="", argv=words, timeout_ms=timeout_ms, allowed_exits=exits))
            exits = PASSING
            at += len(words)
        else:
            numbers[name] = int(value)
    return steps, numbers


def unreachable(what: str = "gone") -> EngineUnreachableError:
    """Return the error of an engine that does not answer."""
    return EngineUnreachableError(f"engine: {what}: no answer")
