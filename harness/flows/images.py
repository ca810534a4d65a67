"""Images: build one and put it on the ledger; look at those of this host."""

from __future__ import annotations

import os
from collections.abc import Callable

from harness.execution.image.build import ImageBuild, build_image
from harness.execution.image.definition import load_definition
from harness.execution.image.lock import LockedImage, read_lock, resolve_image
from harness.execution.image.verify import ImageStatus, hash_image, list_images
from harness.flows.engine import open_engine
from harness.flows.session import Host, now_text
from harness.model.image import Image
from harness.store.resources import find_resources


def build_named_image(host: Host, name: str, report: Callable[[str], None]) -> LockedImage:
    """Build an image from its definition, lock it, and append it to the ledger.

    An image that is locked, built from the same definition and present is left as it is.

    Raises:
        InputError: no such definition, or it has mistakes.
        SandboxUnavailableError: the host or the engine can't.
        AcquisitionError: something from outside can't be had.
    """
    definition = load_definition(find_resources("images"), name)
    engine = open_engine(host)
    locked = read_lock(host.state.images_lock)
    for status in list_images(engine, locked):
        image = status.locked.image
        if image.name == name and image.definition == definition.digest and status.info:
            report(f"image {name} is built already")
            return status.locked
    built = build_image(
        ImageBuild(
            definition=definition,
            engine=engine,
            state=host.state,
            environment=os.environ,
            report=report,
        ),
        built_on=now_text(),
    )
    host.ledger.append("build", "done", project="", body=built.image.to_json())
    return built


def list_host_images(host: Host) -> tuple[ImageStatus, ...]:
    """Return the locked images and whether the engine has them.

    Raises:
        SandboxUnavailableError: no engine answers.
        VerificationError: images.lock is damaged.
    """
    locked = read_lock(host.state.images_lock)
    return list_images(open_engine(host), locked) if locked else ()


def verify_image(host: Host, name: str) -> tuple[Image, int]:
    """Hash everything the engine holds of an image against its locked id.

    Returns:
        The image and the number of bytes hashed.

    Raises:
        ImageMissingError: it is not built on this host, or the engine lost it.
        VerificationError: some bytes are not those of the id.
    """
    image = resolve_image(host.state.images_lock, name)
    return image, hash_image(open_engine(host), image)
