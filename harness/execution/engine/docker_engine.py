"""The Docker adapter: `port.Engine` over the SDK's low-level client.

Rules: every call goes through `DockerCalls._call`; what is gone already counts as removed.
"""

from __future__ import annotations

import io
import ssl
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, cast

from harness.errors import (
    EngineUnreachableError,
    ImageMissingError,
    InputError,
    SandboxUnavailableError,
)
from harness.execution.engine.docker_calls import CONFLICT, GONE, RefusedError
from harness.execution.engine.docker_copies import DockerCopies
from harness.execution.engine.docker_stream import DockerConnection
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    ContainerSpec,
    ContainerState,
    EngineInfo,
    ImageInfo,
    Owned,
    VolumeSpec,
)
from harness.execution.engine.spec import container_request
from harness.model.digest import Digest, parse_digest

SETTLE_SECONDS = 10.0
SETTLE_POLL_SECONDS = 0.05
"""How long, and how often, a removal that meets another one is tried again."""

_LIMITS = {
    "MemoryLimit": "memory",
    "SwapLimit": "swap",
    "CpuCfsQuota": "cpu",
    "PidsLimit": "pids",
}
"""Members of an engine's `/info` that say whether a limit works, and our words for the limits."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class DockerEngine(DockerCopies):
    """A Docker Engine, or what speaks its API."""

    def info(self) -> EngineInfo:
        """Return what the engine says of itself; it is asked once, for it takes its time."""
        return self._info

    @cached_property
    def _info(self) -> EngineInfo:
        found, api = self._call("info", lambda client: (client.info(), client.api_version))
        options = tuple(str(option) for option in found.get("SecurityOptions") or ())
        architecture = str(found.get("Architecture", ""))
        return EngineInfo(
            engine_id=str(found.get("ID", "")),
            version=str(found.get("ServerVersion", "")),
            api_version=str(api),
            cgroup_version=2 if str(found.get("CgroupVersion", "1")) == "2" else 1,
            storage_driver=str(found.get("Driver", "")),
            security_options=options,
            rootless=any(option.startswith("name=rootless") for option in options),
            missing_limits=tuple(
                limit for member, limit in _LIMITS.items() if found.get(member) is False
            ),
            local=self.url.startswith("unix://"),
            os=str(found.get("OSType", "")),
            architecture=_ARCHITECTURES.get(architecture, architecture),
        )

    def image(self, image_id: Digest) -> ImageInfo:
        """Return one image by content id.

        Raises:
            ImageMissingError: it is not there, or the engine calls another image by that id.
        """
        info = image_info(
            self._call("image.inspect", lambda client: client.inspect_image(image_id))
        )
        if info.image_id != image_id:
            raise ImageMissingError(f"image: expected {image_id}, got {info.image_id}")
        return info

    def create_volume(self, volume: VolumeSpec) -> None:
        """Make a volume."""
        self._call(
            "volume.create",
            lambda client: client.create_volume(
                volume.name,
                driver="local",
                driver_opts=dict(volume.options),
                labels=dict(volume.labels),
            ),
        )

    def remove_volume(self, name: str) -> None:
        """Remove a volume; one that is gone already is fine."""
        self._remove("volume.remove", lambda client: client.remove_volume(name))

    def create_container(self, container: ContainerSpec) -> str:
        """Make a worker container and return its id.

        Raises:
            ImageMissingError: the image is not there.
        """
        return self._create("container.create", container_request(container), container.name)

    def attach(self, container: str) -> DockerConnection:
        """Open the standard streams."""
        parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        raw = self._call(
            "container.attach",
            lambda client: client.attach_socket(container, params=parameters),
        )
        return DockerConnection(cast("io.RawIOBase | ssl.SSLSocket", raw), seconds=self._seconds)

    def start(self, container: str) -> None:
        """Start it; one that ends at once is fine."""
        self._call("container.start", lambda client: client.start(container))

    def inspect(self, container: str) -> ContainerState | None:
        """Return its state, or None when it is gone."""
        try:
            found = self._call(
                "container.inspect", lambda client: client.inspect_container(container)
            )
        except RefusedError as error:
            if error.status != GONE:
                raise
            return None
        return _container_state(found)

    def wait(self, container: str, seconds: float) -> ContainerState | None:
        """Return its state once it does not run, or the last one when the time is up."""
        try:
            self._call(
                "container.wait", lambda client: client.wait(container, timeout=max(seconds, 0.1))
            )
        except RefusedError as error:
            if error.status != GONE:
                raise
        except EngineUnreachableError:
            # The time is up, or the engine is gone: the call below tells which.
            return self.inspect(container)
        return self.inspect(container)

    def kill(self, container: str) -> None:
        """Send SIGKILL; one that does not run, or is gone, is fine."""
        try:
            self._call("container.kill", lambda client: client.kill(container))
        except RefusedError as error:
            if error.status not in (GONE, CONFLICT):
                raise

    def remove(self, container: str) -> None:
        """Remove it by force, with its anonymous volumes; one that is gone is fine."""
        self._remove(
            "container.remove",
            lambda client: client.remove_container(container, v=True, force=True),
        )

    def _remove(self, what: str, work: Callable[[Any], object]) -> None:
        """Remove until it is gone.

        A conflict says that somebody else's removal is under way, or that a volume is still held
        by a container that is just going: the engine forgets a container before it lets go of
        the container's volumes.
        """
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                self._call(what, work)
            except RefusedError as error:
                if error.status == GONE:
                    return
                if error.status != CONFLICT or time.monotonic() >= until:
                    raise
                time.sleep(SETTLE_POLL_SECONDS)
            else:
                return

    def owned(self, state: str) -> Owned:
        """Return the containers and volumes labelled with our label and this state id."""
        wanted = {"label": [LABEL_RUN, f"{LABEL_STATE}={state}"]}
        containers = self._call(
            "container.list", lambda client: client.containers(all=True, filters=wanted)
        )
        volumes = self._call("volume.list", lambda client: client.volumes(filters=wanted))
        return Owned(
            containers={str(item["Id"]): str(item["Labels"][LABEL_RUN]) for item in containers},
            volumes={
                str(item["Name"]): str(item["Labels"][LABEL_RUN])
                for item in volumes.get("Volumes") or ()
            },
        )


def image_info(found: dict[str, Any]) -> ImageInfo:
    """Return an image from what the engine's inspect says.

    Raises:
        SandboxUnavailableError: its id is not a digest.
    """
    config = found.get("Config") or {}
    return ImageInfo(
        image_id=_image_id(found["Id"]),
        os=str(found.get("Os", "")),
        architecture=str(found.get("Architecture", "")),
        labels=dict(config.get("Labels") or {}),
        env=tuple(config.get("Env") or ()),
        names=tuple(found.get("RepoTags") or ()),
        size=int(found.get("Size", 0)),
    )


def _container_state(found: dict[str, Any]) -> ContainerState:
    state = found.get("State") or {}
    return ContainerState(
        container=str(found["Id"]),
        image_id=_image_id(found["Image"]),
        status=str(state.get("Status", "")),
        running=bool(state.get("Running")),
        exit_code=int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        pid=int(state.get("Pid") or 0),
        labels=dict((found.get("Config") or {}).get("Labels") or {}),
        host_config=found.get("HostConfig") or {},
    )


def _image_id(text: str) -> Digest:
    try:
        return parse_digest(text)
    except InputError as error:
        raise SandboxUnavailableError(f"engine: image id {text!r:.80} is not a digest") from error
