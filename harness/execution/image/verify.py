"""Is an image still what was locked? The engine's answer, then, on request, every byte and init.

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
from harness.execution.image.init_layer import INIT_FOLDER, MAX_INIT, init_inside
from harness.execution.image.lock import LockedImage
from harness.execution.image.offline import look_inside
from harness.execution.image.pieces import PieceStream
from harness.execution.image.room import BUSY
from harness.model.canonical import parse_json
from harness.model.digest import PREFIX, Digest, digest_of
from harness.model.image import LABEL_DEFINITION, LABEL_IMAGE, Image
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

MAX_CONFIG = 4 * 1024 * 1024
LOOK_SECONDS = 60
"""How long a look into an image waits for a build that is at work."""


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

    Args:
        engine: has it.
        image: as it is locked.

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


def find_init(engine: ImageEngine, image: Image, state: StateFolder) -> Digest:
    """Return the digest of the init that a worker of an image would get; nothing is started.

    Raises:
        ImageMissingError: the image is not there.
        VerificationError: at init's place is something else than one program in a folder.
        SandboxUnavailableError: the engine does not answer, or refuses.
        StateError: a build is at work on this state folder.
    """
    with hold_lock(state.images / "lock", wait_seconds=LOOK_SECONDS, busy=BUSY):
        archive = look_inside(engine, image.image_id, INIT_FOLDER, limit=MAX_INIT, state=state)
    return init_inside(archive, f"image {image.name}")


def check_locked_init(engine: ImageEngine, locked: LockedImage, state: StateFolder) -> Digest:
    """Check that an image has the init that was put in when it was locked.

    Returns:
        Its digest.

    Raises:
        ImageMissingError: the image is not there.
        VerificationError: it has another init.
        SandboxUnavailableError: the engine does not answer, or refuses.
        StateError: a build is at work on this state folder.
    """
    found = find_init(engine, locked.image, state)
    if locked.init not in (None, found):
        raise VerificationError(
            f"image {locked.image.name}: init: expected {locked.init}, got {found}",
            hint="build or add the image again, and find out who changed it",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Saved:
    """What an archive holds, by digest: small files whole, and the size of every file."""

    configs: dict[str, bytes]
    sizes: dict[str, int]


def _read_archive(chunks: Iterator[bytes], name: str) -> _Saved:
    """Hash each file of a `docker save` archive, whatever its layout calls it."""
    saved = _Saved({}, {})
    try:
        with tarfile.open(fileobj=io.BufferedReader(PieceStream(chunks)), mode="r|") as archive:
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


def _info_or_none(engine: Engine, image: Image) -> ImageInfo | None:
    try:
        return engine.image(image.image_id)
    except ImageMissingError:
        return None
