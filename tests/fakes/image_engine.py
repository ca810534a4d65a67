"""The fake engine with the other half: `registry.RegistryEngine` in memory.

Images are loaded from real archives and named by the digest of their config, as by an engine with
the classic store. A build container's program is a function from what was copied in to an exit
code and the files it made; its files are given back as a tar archive.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from harness.errors import AcquisitionError, ImageMissingError
from harness.execution.engine.port import (
    BuildSpec,
    Chunk,
    ContainerState,
    ImageInfo,
    Pause,
)
from harness.execution.engine.registry import RemoteImage
from harness.execution.engine.spec import INIT_PATH
from harness.execution.image.init_layer import INIT_FOLDER
from harness.model.digest import Digest, digest_of
from tests.fakes.engine import FakeConnection, FakeEngine

Made = Mapping[str, bytes]
BuildProgram = Callable[[BuildSpec, Mapping[str, bytes]], tuple[int, Made]]


def all_well(spec: BuildSpec, files: Mapping[str, bytes]) -> tuple[int, Made]:
    """Succeed at once and make one file; init says that it does not know its argument."""
    del files
    return 64 if spec.argv[0] == INIT_PATH else 0, {"out/usr/local/made": b"made"}


@dataclass(slots=True)
class _Build:
    spec: BuildSpec
    files: dict[str, bytes] = field(default_factory=dict)
    made: Made = field(default_factory=dict)
    exit_code: int = 0


class _Said(FakeConnection):
    """A connection on which a build says one thing and ends."""

    def __init__(self, engine: FakeEngine, container: str) -> None:
        super().__init__(engine, container)
        self._left: list[Chunk | Pause] = [
            Chunk(stream="stderr", data=b"what the program printed\n"),
            Pause.SILENCE,
        ]

    def send(self, data: bytes) -> None:
        del data

    def receive(self, seconds: float) -> Chunk | Pause:
        del seconds
        return self._left.pop(0) if self._left else Pause.END

    def close(self) -> None:
        self._left.clear()


class FakeImageEngine(FakeEngine):
    """Implements `registry.RegistryEngine`.

    Args:
        program: what build containers run.

    Attributes:
        registry: what names mean at registries, `host/path:tag` or `host/path@digest`.
        stored: archives that registries have, by manifest digest.
    """

    def __init__(self, program: BuildProgram = all_well) -> None:
        super().__init__()
        self.program = program
        self.builds: dict[str, _Build] = {}
        self.archives: dict[Digest, bytes] = {}
        self.names: dict[str, Digest] = {}
        self.registry: dict[str, RemoteImage] = {}
        self.stored: dict[Digest, bytes] = {}

    def load_image(self, archive: Iterable[bytes]) -> None:
        self._call("load_image")
        self._load(b"".join(archive))

    def _load(self, data: bytes) -> Digest:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            (entry,) = json.loads(_content(tar, "manifest.json"))
            raw = _content(tar, entry["Config"])
        config = json.loads(raw)
        image_id = digest_of(raw)
        self.archives[image_id] = data
        self.images[image_id] = ImageInfo(
            image_id=image_id,
            os=config["os"],
            architecture=config["architecture"],
            labels=config.get("config", {}).get("Labels") or {},
            env=(),
            names=(),
            size=len(data),
        )
        return image_id

    def save_image(self, image_id: Digest) -> Iterator[bytes]:
        self._call("save_image")
        if image_id not in self.archives:
            raise ImageMissingError("image: the engine does not have it")
        data = self.archives[image_id]
        return (data[start : start + 700] for start in range(0, len(data), 700))

    def create_build_container(self, build: BuildSpec) -> str:
        self._call("create_build_container")
        if build.image_id not in self.images:
            raise ImageMissingError("image: the engine does not have it")
        self.builds[build.name] = _Build(build)
        return build.name

    def copy_in(self, container: str, path: str, tar: BinaryIO | Iterable[bytes]) -> None:
        if container not in self.builds:
            super().copy_in(container, path, tar)
            return
        self._call("copy_in")
        data = tar.read() if isinstance(tar, io.IOBase) else b"".join(tar)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                if member.isreg():
                    self.builds[container].files[member.name] = _content(archive, member.name)

    def attach(self, container: str) -> FakeConnection:
        return _Said(self, container) if container in self.builds else super().attach(container)

    def start(self, container: str) -> None:
        self._call("start")
        build = self.builds[container]
        build.exit_code, build.made = self.program(build.spec, build.files)

    def wait(self, container: str, seconds: float) -> ContainerState | None:
        del seconds
        build = self.builds.get(container)
        if build is None:
            return None
        return ContainerState(
            container=container,
            image_id=build.spec.image_id,
            status="exited",
            running=False,
            exit_code=build.exit_code,
            oom_killed=False,
            error="",
            pid=0,
            labels=build.spec.labels,
            host_config={},
        )

    def remove(self, container: str) -> None:
        self._call("remove")
        self.builds.pop(container, None)

    def copy_out(self, container: str, path: str, *, limit: int) -> bytes:
        self._call("copy_out")
        if path == f"/{INIT_FOLDER}":
            return self._folder(self.builds[container].spec.image_id, INIT_FOLDER)
        del limit
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in self.builds[container].made.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return out.getvalue()

    def tag(self, image_id: Digest, name: str) -> None:
        self._call("tag")
        self.names[name] = image_id

    def remove_image(self, image_id: Digest) -> None:
        self._call("remove_image")
        self.images.pop(image_id, None)
        self.archives.pop(image_id, None)
        self.names = {name: held for name, held in self.names.items() if held != image_id}

    def find_image(self, name: str) -> ImageInfo | None:
        self._call("find_image")
        return self.images.get(self.names.get(name, Digest(name)))

    def resolve(self, name: str) -> RemoteImage:
        self._call("resolve")
        if name not in self.registry:
            raise AcquisitionError(f"registry: {name}: manifest unknown")
        return self.registry[name]

    def pull(self, repository: str, digest: Digest, platform: str) -> None:
        self._call("pull")
        del platform
        if digest not in self.stored:
            raise AcquisitionError(f"registry: {repository}@{digest}: manifest unknown")
        self.names[f"{repository}@{digest}"] = self._load(self.stored[digest])

    def untag(self, name: str) -> None:
        self._call("untag")
        held = self.names.pop(name, None)
        if held and held not in self.names.values():
            self.remove_image(held)

    def _folder(self, image_id: Digest, folder: str) -> bytes:
        """Return a folder as the highest layer that has it shows it."""
        out = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(self.archives[image_id])) as saved:
            (entry,) = json.loads(_content(saved, "manifest.json"))
            top = _content(saved, entry["Layers"][-1])
        with (
            tarfile.open(fileobj=io.BytesIO(top)) as layer,
            tarfile.open(fileobj=out, mode="w") as shown,
        ):
            for member in layer.getmembers():
                if member.name.split("/")[0] == folder and ".wh." not in member.name:
                    content = layer.extractfile(member) if member.isreg() else None
                    shown.addfile(member, content)
        return out.getvalue()

    def list_images(self, label: str) -> tuple[ImageInfo, ...]:
        name, _, value = label.partition("=")
        return tuple(
            info
            for info in self.images.values()
            if name in info.labels and value in ("", info.labels[name])
        )


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(name)
    if stream is None:
        raise ValueError(name)
    return stream.read()
