"""The engine as a worker needs it: two protocols and the values that cross them.

Rules:
    * Every method has a deadline of its own and never hangs.
    * Containers and images are named by id; a name or tag never selects what runs.
    * Foreign errors arrive as `EngineUnreachableError` (nobody answers), `ImageMissingError`
      (no such image) or `SandboxUnavailableError` (the engine refused).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

from harness.execution.engine.copies import CopyEngine
from harness.model.digest import Digest
from harness.model.limits import Limits

LABEL_RUN = "harness.run"
"""Label of everything made for one run; its value is the run id."""

LABEL_STATE = "harness.state"
"""Label that says which state folder made it; two state folders never touch each other's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an engine says of itself.

    Attributes:
        engine_id: names this engine, and no other.
        version: of the engine.
        api_version: the API version in use.
        cgroup_version: 1 or 2.
        storage_driver: of its image store, `overlay2` say.
        security_options: as the engine lists them, `name=seccomp,profile=default` say.
        rootless: the engine runs as a plain user.
        missing_limits: limits that it says it can't enforce, in the order they are shown.
        local: it is reached by a unix socket, so that it may see the caller's folders.
        os: `linux` unless it is something we can't use.
        architecture: `amd64` or `arm64`, in the spelling of image platforms.
    """

    engine_id: str
    version: str
    api_version: str
    cgroup_version: int
    storage_driver: str
    security_options: tuple[str, ...]
    rootless: bool
    missing_limits: tuple[str, ...] = ()
    local: bool
    os: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInfo:
    """What an engine says of one image.

    Attributes:
        image_id: its content id.
        os: `linux`.
        architecture: `amd64` or `arm64`.
        labels: of its config.
        env: of its config, `NAME=value`.
        names: tags that point to it now.
        size: bytes.
    """

    image_id: Digest
    os: str
    architecture: str
    labels: Mapping[str, str]
    env: tuple[str, ...]
    names: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSpec:
    """A volume of the engine's own `local` driver.

    Attributes:
        name: unique.
        options: driver options: `type`, `device`, `o`; none for a plain folder of the engine's.
        labels: say whose it is.
    """

    name: str
    options: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """One worker container, in our own words; `spec` turns it into an engine's request.

    Attributes:
        name: unique.
        image_id: content id of the sealed image.
        unset_env: names that the image's or the engine's own environment would add.
        argv: arguments of init.
        env: the whole environment of the payload.
        uid: numeric user.
        gid: numeric group.
        volume: name of the volume at /workspace; empty for none.
        limits: what the worker gets.
        tmp_exec: whether programs in /tmp may be executed.
        labels: say whose it is.
    """

    name: str
    image_id: Digest
    unset_env: tuple[str, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    uid: int
    gid: int
    volume: str
    limits: Limits
    tmp_exec: bool
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """What an engine says of one container now.

    Attributes:
        container: its id.
        image_id: id of the image it was made from.
        status: `created`, `running`, `exited`, `dead` or another word of the engine's.
        running: whether its first process lives.
        exit_code: of its first process; meaningless while it runs.
        oom_killed: the engine's own flag.
        error: the engine's reason for a failed start; empty otherwise.
        pid: host pid of its first process; 0 when it does not run.
        labels: as created.
        host_config: the limits in force, in the engine's own words.
    """

    container: str
    image_id: Digest
    status: str
    running: bool
    exit_code: int
    oom_killed: bool
    error: str
    pid: int
    labels: Mapping[str, str]
    host_config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes that came out of a container.

    Attributes:
        stream: which of its first process's two streams.
        data: one or more bytes.
    """

    stream: Literal["stdout", "stderr"]
    data: bytes


class Pause(Enum):
    """Why `receive` brought no bytes."""

    SILENCE = "nothing came within the time"
    END = "the container closed its streams"


class Connection(Protocol):
    """The three standard streams of a container, from before its start."""

    def send(self, data: bytes) -> None:
        """Write to the container's stdin.

        Raises:
            EngineUnreachableError: the connection is gone or does not take the bytes in time.
        """

    def receive(self, seconds: float) -> Chunk | Pause:
        """Return the next bytes, waiting at most so long; never loses any.

        Raises:
            EngineUnreachableError: the connection broke in the middle of a frame.
        """

    def close(self) -> None:
        """Close it; the container's stdin ends. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What carries our labels on an engine.

    Attributes:
        containers: id -> run id.
        volumes: name -> run id.
    """

    containers: Mapping[str, str]
    volumes: Mapping[str, str]


class Engine(CopyEngine, Protocol):
    """All that running one worker needs of an engine.

    Any method may raise `EngineUnreachableError` when nobody answers before its deadline, and
    `SandboxUnavailableError` when the engine refuses.
    """

    def info(self) -> EngineInfo:
        """Return what the engine says of itself."""

    def image(self, image_id: Digest) -> ImageInfo:
        """Return one image by content id.

        Raises:
            ImageMissingError: it is not there.
        """

    def create_volume(self, volume: VolumeSpec) -> None:
        """Make a volume."""

    def remove_volume(self, name: str) -> None:
        """Remove a volume; one that is gone already is fine."""

    def create_container(self, container: ContainerSpec) -> str:
        """Make a worker container and return its id; it is not started.

        Raises:
            ImageMissingError: the image is not there.
        """

    def attach(self, container: str) -> Connection:
        """Open the standard streams; call it before `start` so that no byte is missed."""

    def start(self, container: str) -> None:
        """Start it; one that ends at once is fine."""

    def inspect(self, container: str) -> ContainerState | None:
        """Return its state, or None when it is gone."""

    def wait(self, container: str, seconds: float) -> ContainerState | None:
        """Return its state once it does not run, or the last one when the time is up.

        Returns:
            The state, or None when the container is gone.
        """

    def kill(self, container: str) -> None:
        """Send SIGKILL; one that does not run, or is gone, is fine."""

    def remove(self, container: str) -> None:
        """Remove it by force, with its anonymous volumes; one that is gone already is fine."""

    def copy_out(self, container: str, path: str, *, limit: int) -> bytes:
        """Return a tar archive of one path; the container may be created only.

        Args:
            container: id.
            path: absolute path inside.
            limit: most bytes to accept.

        Raises:
            SandboxUnavailableError: no such path, or the archive is larger.
        """

    def owned(self, state: str) -> Owned:
        """Return the containers and volumes labelled with our label and this state id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpec:
    """One container of an image build: root inside, writable root, no network.

    Attributes:
        name: unique.
        image_id: what it starts from.
        argv: program and arguments.
        env: added to the image's environment.
        labels: say whose it is.
    """

    name: str
    image_id: Digest
    argv: tuple[str, ...]
    env: Mapping[str, str]
    labels: Mapping[str, str]


class ImageEngine(Engine, Protocol):
    """What building images needs on top."""

    def load_image(self, archive: Iterable[bytes]) -> None:
        """Load images from a `docker save` archive; their ids follow from its bytes."""

    def save_image(self, image_id: Digest) -> Iterator[bytes]:
        """Yield the `docker save` archive of an image, in pieces.

        Raises:
            ImageMissingError: it is not there.
        """

    def create_build_container(self, build: BuildSpec) -> str:
        """Make a build container and return its id; it is not started.

        Raises:
            ImageMissingError: the image is not there.
        """

    def tag(self, image_id: Digest, name: str) -> None:
        """Point a name (`repository:tag`) at an image."""

    def remove_image(self, image_id: Digest) -> None:
        """Remove an image that no container uses; one that is gone already is fine."""

    def list_images(self, label: str) -> tuple[ImageInfo, ...]:
        """Return the images that carry a label (`name` or `name=value`)."""
