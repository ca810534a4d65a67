"""The Docker adapter's other half: `port.ImageEngine`, for building images.

Rules: nothing here pulls (`docker_registry` does) or has a network; an image's id follows from its
archive's bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.errors import ImageMissingError, SandboxUnavailableError
from harness.execution.engine.docker_calls import GONE, RefusedError, translated
from harness.execution.engine.docker_engine import DockerEngine, image_info
from harness.execution.engine.port import BuildSpec, ImageInfo
from harness.execution.engine.spec import build_request
from harness.model.digest import Digest


class DockerImageEngine(DockerEngine):
    """A Docker Engine that also builds images."""

    def load_image(self, archive: Iterable[bytes]) -> None:
        """Load images from a `docker save` archive.

        Raises:
            SandboxUnavailableError: the engine found the archive wrong.
        """
        pieces = iter(archive)  # the SDK would take a list for form fields
        lines = self._call("image.load", lambda client: list(client.load_image(pieces)), slow=True)
        for line in lines:
            if isinstance(line, dict) and "error" in line:
                reason = " ".join(str(line["error"]).split())[:300]
                raise SandboxUnavailableError(f"engine: image.load: {reason}")

    def save_image(self, image_id: Digest) -> Iterator[bytes]:
        """Yield the `docker save` archive of an image, in pieces.

        Raises:
            ImageMissingError: it is not there.
            EngineUnreachableError: the archive was cut.
        """
        self.image(image_id)
        pieces = self._call("image.save", lambda client: client.get_image(image_id), slow=True)
        with translated("image.save"):
            yield from pieces

    def create_build_container(self, build: BuildSpec) -> str:
        """Make a build container and return its id; it is not started."""
        return self._create("build.create", build_request(build), build.name)

    def tag(self, image_id: Digest, name: str) -> None:
        """Point a name (`repository:tag`) at an image."""
        repository, _, tag = name.rpartition(":")
        self._call("image.tag", lambda client: client.tag(image_id, repository, tag, force=True))

    def remove_image(self, image_id: Digest) -> None:
        """Remove an image that no container uses; one that is gone already is fine."""
        try:
            self._call("image.remove", lambda client: client.remove_image(image_id))
        except ImageMissingError:
            return
        except RefusedError as error:
            if error.status != GONE:
                raise

    def list_images(self, label: str) -> tuple[ImageInfo, ...]:
        """Return the images that carry a label (`name` or `name=value`)."""
        found = self._call(
            "image.list", lambda client: client.images(filters={"label": label}, all=False)
        )
        ids = sorted({str(item["Id"]) for item in found})
        return tuple(self._inspect(name) for name in ids)

    def _inspect(self, image_id: str) -> ImageInfo:
        return image_info(
            self._call("image.inspect", lambda client: client.inspect_image(image_id))
        )
