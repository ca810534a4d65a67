"""The last steps of every image: load, check, name, lock. A failure takes all of them back.

Rule: a name becomes usable last. What fails or is interrupted before leaves no name and no image.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from harness.errors import HarnessError, ImageMissingError, SandboxUnavailableError
from harness.execution.engine.port import ImageEngine
from harness.execution.image.archive import ImageSource
from harness.execution.image.lock import LockedImage, lock_image, read_lock
from harness.model.digest import parse_digest, short
from harness.model.image import LABEL_DEFINITION, LABEL_IMAGE, Image
from harness.store.state import StateFolder

ARCHITECTURES = ("amd64", "arm64")
OTHER_STORE = "use an engine whose image store names images by their config (overlay2)"


def check_architecture(engine: ImageEngine) -> str:
    """Return the engine's architecture.

    Raises:
        SandboxUnavailableError: worker images are not made for it.
    """
    architecture = engine.info().architecture
    if architecture not in ARCHITECTURES:
        raise SandboxUnavailableError(
            f"engine: expected one of {', '.join(ARCHITECTURES)}, got {architecture!r:.40}"
        )
    return architecture


def image_of(source: ImageSource) -> Image:
    """Return what a seal will take of an image."""
    return Image(
        name=source.labels[LABEL_IMAGE],
        image_id=source.image_id,
        platform=f"linux/{source.architecture}",
        definition=parse_digest(source.labels[LABEL_DEFINITION]),
    )


def load_source(engine: ImageEngine, source: ImageSource) -> None:
    """Load an image into the engine.

    Raises:
        SandboxUnavailableError: the engine refuses it, or names it in another way.
    """
    engine.load_image(source.archive())
    try:
        engine.image(source.image_id)
    except ImageMissingError as error:
        raise SandboxUnavailableError(
            f"engine: expected the image {source.image_id} after loading it", hint=OTHER_STORE
        ) from error


def finish_image(
    engine: ImageEngine,
    state: StateFolder,
    source: ImageSource,
    locked: LockedImage,
    *,
    check: Callable[[], None],
    report: Callable[[str], None],
) -> None:
    """Load an image, check it, then give it its name.

    Args:
        engine: takes it.
        state: whose images.lock gets the name.
        source: the image.
        locked: its line.
        check: raises when the loaded image is not usable.
        report: is told what happens now.

    Raises:
        HarnessError: what the engine, the check or the lock file raises; all is taken back.
    """
    image = locked.image
    kept = {other.image.image_id for other in read_lock(state.images_lock).values()}
    report(f"image: load {short(image.image_id)} into the engine and check it offline")
    try:
        load_source(engine, source)
        check()
        engine.tag(image.image_id, f"harness/{image.name}:latest")
        lock_image(state.images_lock, locked)
    except BaseException:
        if image.image_id not in kept:
            with contextlib.suppress(HarnessError):
                engine.remove_image(image.image_id)
        raise
    report(f"image: {image.name} is {image.image_id}")
