"""The Docker adapter's part for `registry.RegistryEngine`: names, and what registries say.

Rule: a registry that fails is an `AcquisitionError`; an engine that fails is not blamed on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.errors import (
    AcquisitionError,
    EngineUnreachableError,
    ImageMissingError,
    InputError,
)
from harness.execution.engine.docker_calls import GONE, RefusedError
from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.port import ImageInfo
from harness.execution.engine.registry import RemoteImage
from harness.model.digest import Digest, parse_digest

_HINT = "check the name, the registry and `docker login`; nothing was added"


class DockerRegistryEngine(DockerImageEngine):
    """A Docker Engine that also finds and fetches images."""

    def find_image(self, name: str) -> ImageInfo | None:
        """Return the image that the engine has under a name, or None."""
        try:
            return self._inspect(name)
        except ImageMissingError:
            return None

    def resolve(self, name: str) -> RemoteImage:
        """Ask the registry of a name what it means.

        Raises:
            AcquisitionError: the registry does not answer, refuses, or has no such image.
        """
        with self._registry(name):
            found = self._call("registry.resolve", lambda client: client.inspect_distribution(name))
        try:
            return RemoteImage(
                digest=parse_digest(found["Descriptor"]["digest"]),
                platforms=tuple(
                    f"{item['os']}/{item['architecture']}" for item in found["Platforms"] or ()
                ),
            )
        except (InputError, KeyError, TypeError) as error:
            raise AcquisitionError(
                f"registry: {name}: expected a digest and platforms, got something else"
            ) from error

    def pull(self, repository: str, digest: Digest, platform: str) -> None:
        """Fetch an image by digest; the engine checks every byte against it.

        Raises:
            AcquisitionError: the registry does not answer, refuses, or has no such image there.
        """
        name = f"{repository}@{digest}"
        with self._registry(name):
            lines = self._call(
                "registry.pull",
                lambda client: list(
                    client.pull(repository, tag=digest, stream=True, decode=True, platform=platform)
                ),
                slow=True,
            )
        for line in lines:
            if isinstance(line, dict) and "error" in line:
                raise AcquisitionError(
                    f"registry: {name}: {' '.join(str(line['error']).split())[:300]}", hint=_HINT
                )

    def untag(self, name: str) -> None:
        """Take a name away, and an image that no name and no container needs any more."""
        try:
            self._call("image.untag", lambda client: client.remove_image(name))
        except ImageMissingError:
            return
        except RefusedError as error:
            if error.status != GONE:
                raise

    @contextlib.contextmanager
    def _registry(self, name: str) -> Iterator[None]:
        """Blame the registry for what the engine says of it.

        Raises:
            AcquisitionError: the engine got no answer from it, or a refusal.
            EngineUnreachableError: the engine itself does not answer.
        """
        try:
            yield
        except (ImageMissingError, RefusedError) as error:
            reason = error.message.partition("registry.")[2].partition(": ")[2]
            raise AcquisitionError(
                f"registry: {name}: {reason or 'has no such image'}", hint=_HINT
            ) from error
        except EngineUnreachableError as error:
            self.info()  # raises when it is the engine that is silent
            raise AcquisitionError(f"registry: {name}: no answer in time", hint=_HINT) from error
