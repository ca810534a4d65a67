"""Is an image still what was locked? The engine's answer, then, on request, every byte.

Names play no part: an image that was retagged, or lost its tag, is found by its content id.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from harness.errors import ImageMissingError, InputError, VerificationError
from harness.execution.engine.port import Engine, ImageEngine, ImageInfo
from harness.execution.image.lock import LockedImage
from harness.model.canonical import parse_json
from harness.model.digest import PREFIX, digest_of
from harness.model.image import Image

LABEL_IMAGE = "harness.image"
LABEL_DEFINITION = "harness.definition"
MAX_CONFIG = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageStatus:
    """One line of `harness image list`.

    Attributes:
        locked: the image.
        info: what the engine says of it; None when the engine does not have it.
    """

    locked: LockedImage
    info: ImageInfo | None


def list_images(engine: Engine, images: dict[str, LockedImage]) -> tuple[ImageStatus, ...]:
    """Return every locked image, sorted by name, and whether the engine has it.

    Raises:
        SandboxUnavailableError: the engine does not answer, or refuses.
    """
    return tuple(
        ImageStatus(locked=images[name], info=_info_or_none(engine, images[name].image))
        for name in sorted(images)
    )


def check_image(engine: Engine, image: Image) -> ImageInfo:
    """Check that the engine has the locked image, made from the locked definition.

    Raises:
        ImageMissingError: it is not there.
        VerificationError: its labels or its platform are not the locked ones.
        SandboxUnavailableError: the engine does not answer, or refuses.
    """
    info = engine.image(image.image_id)
    for what, expected, got in (
        ("id", image.image_id, info.image_id),
        ("platform", image.platform, f"{info.os}/{info.architecture}"),
        ("name", image.name, info.labels.get(LABEL_IMAGE)),
        ("definition", image.definition, info.labels.get(LABEL_DEFINITION)),
    ):
        if expected != got:
            raise VerificationError(f"image {image.name}: {what}: expected {expected}, got {got}")
    return info


def hash_image(engine: ImageEngine, image: Image) -> int:
    """Hash everything the engine holds of an image, config and layers, against its id.

    Returns:
        The number of bytes in its layers.

    Raises:
        ImageMissingError: it is not there.
        VerificationError: the config has another digest than the id, or a layer another one than
            the config says.
        SandboxUnavailableError: the engine does not answer, or refuses.
    """
    check_image(engine, image)
    saved = _read_archive(engine.save_image(image.image_id), image.name)
    config = saved.configs.get(image.image_id)
    if config is None:
        raise VerificationError(f"image {image.name}: the engine's config has another digest")
    try:
        expected = parse_json(config)["rootfs"]["diff_ids"]
    except (InputError, KeyError, TypeError) as error:
        raise VerificationError(f"image {image.name}: its config can't be read") from error
    if not isinstance(expected, list) or not expected:
        raise VerificationError(f"image {image.name}: its config names no layers")
    for number, digest in enumerate(expected, 1):
        if digest not in saved.sizes:
            raise VerificationError(
                f"image {image.name}: layer {number} of {len(expected)}: the engine's bytes have "
                f"another digest than {digest}"
            )
    return sum(saved.sizes[digest] for digest in expected)


@dataclass(frozen=True, slots=True)
class _Saved:
    """What an archive holds, by digest: small files whole, and the size of every file."""

    configs: dict[str, bytes]
    sizes: dict[str, int]


def _read_archive(chunks: Iterator[bytes], name: str) -> _Saved:
    """Hash each file of a `docker save` archive, whatever its layout calls it."""
    saved = _Saved({}, {})
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Chunks(chunks)), mode="r|") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    continue
                if member.size <= MAX_CONFIG:
                    data = stream.read()
                    saved.configs[digest_of(data)] = data
                    saved.sizes[digest_of(data)] = member.size
                else:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
                    saved.sizes[PREFIX + digest] = member.size
    except (tarfile.TarError, EOFError) as error:
        raise VerificationError(f"image {name}: the engine's archive can't be read") from error
    return saved


class _Chunks(io.RawIOBase):
    """Pieces of bytes as a file object."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._rest:
            piece = next(self._chunks, None)
            if piece is None:
                return 0
            self._rest = piece
        taken, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


def _info_or_none(engine: Engine, image: Image) -> ImageInfo | None:
    try:
        return engine.image(image.image_id)
    except ImageMissingError:
        return None
