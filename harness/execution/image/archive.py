"""The archive an engine loads an image from: layers, a config of ours, a manifest.

The format is that of `docker save` (Docker Image Specification v1.2, "combined image JSON"). An
engine with the classic store names an image by the SHA-256 of its config's bytes, and the config
names the layers by theirs. So the id depends on content only: an import or a commit would put
the time of the build into it.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.execution.image.layer import FIXED_TIME
from harness.model.canonical import canonical_bytes
from harness.model.digest import PREFIX, Digest, digest_of

CREATED = "1980-01-01T00:00:00Z"
"""The creation time in every config: that of all files in the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer.

    Attributes:
        digest: of the tar archive.
        size: its bytes.
        read: yields it in pieces.
    """

    digest: Digest
    size: int
    read: Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """An image before an engine has it.

    Attributes:
        architecture: `amd64` or `arm64`.
        layers: lowest first.
        labels: of the config.
    """

    architecture: str
    layers: tuple[Layer, ...]
    labels: Mapping[str, str]

    @property
    def config(self) -> bytes:
        """Return the bytes of the config; environment, command and entrypoint stay empty."""
        return canonical_bytes(
            {
                "architecture": self.architecture,
                "os": "linux",
                "created": CREATED,
                "config": {"Labels": dict(self.labels)},
                "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
                "history": [{"created": CREATED} for _ in self.layers],
            }
        )

    @property
    def image_id(self) -> Digest:
        """Return the id the image will have."""
        return digest_of(self.config)

    def archive(self) -> Iterator[bytes]:
        """Yield the archive in pieces."""
        config_name = f"{_hex(self.image_id)}.json"
        names = [f"{_hex(layer.digest)}.tar" for layer in self.layers]
        manifest = json.dumps([{"Config": config_name, "RepoTags": None, "Layers": names}])
        for name, data in (("manifest.json", manifest.encode()), (config_name, self.config)):
            yield from _file(name, len(data), (data,))
        for name, layer in zip(names, self.layers, strict=True):
            yield from _file(name, layer.size, layer.read())
        yield bytes(2 * tarfile.BLOCKSIZE)


def layer_of(data: bytes) -> Layer:
    """Return a layer that is held in memory."""
    return Layer(digest=digest_of(data), size=len(data), read=lambda: iter((data,)))


def _hex(digest: Digest) -> str:
    return digest.removeprefix(PREFIX)


def _file(name: str, size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = size, FIXED_TIME
    yield member.tobuf(tarfile.GNU_FORMAT)
    yield from chunks
    yield bytes(-size % tarfile.BLOCKSIZE)
