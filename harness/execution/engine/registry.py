"""The engine port for images that have to be found first: by a name, here or at a registry.

The engine speaks to the registry, with the caller's own `docker login`; nothing else of ours does.
A name is resolved once, to a digest; what is fetched and kept is named by digest only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness.execution.engine.port import ImageEngine, ImageInfo
from harness.model.digest import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteImage:
    """What a registry says of a name.

    Attributes:
        digest: of the manifest, or of the list of manifests when it is for several platforms.
        platforms: `linux/amd64` and so on.
    """

    digest: Digest
    platforms: tuple[str, ...]


class RegistryEngine(ImageEngine, Protocol):
    """What adding images needs on top."""

    def find_image(self, name: str) -> ImageInfo | None:
        """Return the image that the engine has under a name, or None."""

    def resolve(self, name: str) -> RemoteImage:
        """Ask the registry of a name what it means.

        Args:
            name: `host/path:tag` or `host/path@digest`.

        Raises:
            AcquisitionError: the registry does not answer, refuses, or has no such image.
        """

    def pull(self, repository: str, digest: Digest, platform: str) -> None:
        """Fetch an image by digest; the engine checks every byte against it.

        Raises:
            AcquisitionError: the registry does not answer, refuses, or has no such image there.
        """

    def untag(self, name: str) -> None:
        """Take a name away, and an image that no name and no container needs any more."""
