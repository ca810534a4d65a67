"""Images: build or add one and put it on the ledger; look at those of this host."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import ImageMissingError, InputError, VerificationError
from harness.execution.image.acquire import find_on_engine, resolve_remote
from harness.execution.image.add import ImageAddition, add_image, check_unmoved
from harness.execution.image.build import ImageBuild, build_image
from harness.execution.image.compare import Difference, compare_images
from harness.execution.image.definition import list_definitions, load_definition, load_init
from harness.execution.image.lock import LockedImage, find_locked, read_lock
from harness.execution.image.reference import parse_image_source, parse_reference
from harness.execution.image.room import hold_room
from harness.execution.image.verify import (
    ImageStatus,
    check_locked_init,
    hash_image,
    list_images,
)
from harness.flows.engine import open_engine
from harness.flows.session import Host, now_text
from harness.model.digest import Digest
from harness.model.image import parse_image_name
from harness.store.resources import find_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """What a build left.

    Attributes:
        locked: the image's line.
        difference: to the image that had the name before; None when it is the same one, when there
            was none, or when the engine lost it.
    """

    locked: LockedImage
    difference: Difference | None


def build_named_image(
    host: Host, name: str, report: Callable[[str], None], *, fresh: bool = False
) -> BuiltImage:
    """Build an image from its definition, lock it, and append it to the ledger.

    An image that is locked, built from the same definition and present is left as it is, unless a
    fresh build is asked for: that takes nothing from the cache.

    Raises:
        InputError: no such definition, or it has mistakes.
        SandboxUnavailableError: the host or the engine can't.
        AcquisitionError: something from outside can't be had.
        VerificationError: images.lock or the cache is damaged.
        StateError: another build is at work, or the disk is full.
    """
    definition = load_definition(find_resources("images"), name)
    engine = open_engine(host)
    before = read_lock(host.state.images_lock).get(name)
    there = before is not None and engine.find_image(before.image.image_id) is not None
    if before and there and before.image.definition == definition.digest and not fresh:
        report(f"image {name} is built already")
        return BuiltImage(locked=before, difference=None)
    build = ImageBuild(
        definition=definition,
        engine=engine,
        state=host.state,
        environment=os.environ,
        report=report,
        fresh=fresh,
    )
    built = build_image(build, built_on=now_text())
    host.ledger.append("build", "done", project="", body=built.image.to_json())
    if before is None or not there or before.image.image_id == built.image.image_id:
        return BuiltImage(locked=built, difference=None)
    report("image: compare it with the one before")
    with hold_room(host.state) as room:
        ids = (before.image.image_id, built.image.image_id)
        return BuiltImage(locked=built, difference=compare_images(engine, *ids, room.folder))


def add_named_image(
    host: Host,
    name: str,
    source: str,
    report: Callable[[str], None],
    *,
    chosen: str = "",
    replace: bool = False,
) -> LockedImage:
    """Add an image that exists, lock it, and append it to the ledger.

    Args:
        host: this host.
        name: what recipes will call it.
        source: an archive, an image id, or a reference.
        report: is told what happens now.
        chosen: which image of an archive with several; empty when it was not said.
        replace: the name may mean another image from now on.

    Raises:
        InputError: a malformed name or source, the archive is no image, or the name is taken.
        AcquisitionError: the registry does not answer, or has no such image.
        VerificationError: a digest is not the one that was named, or a locked tag was moved.
        ImageMissingError: the engine has no such image.
        SandboxUnavailableError: the host or the engine can't.
        StateError: another build is at work, or the disk is full.
    """
    images = find_resources("images")
    if parse_image_name(name) in list_definitions(images):
        raise InputError(
            f"image {name}: has a definition of this name",
            hint=f"choose another name, or run `harness image build {name}`",
        )
    parsed = parse_image_source(source)
    addition = ImageAddition(
        name=name,
        source=parsed,
        chosen=chosen,
        replace=replace,
        init=load_init(images),
        engine=open_engine(host),
        state=host.state,
        environment=os.environ,
        report=report,
    )
    before = read_lock(host.state.images_lock).get(name)
    added = add_image(addition, added_on=now_text())
    if added != before:
        host.ledger.append("add", "done", project="", body=added.to_json())
    return added


def list_host_images(host: Host) -> tuple[ImageStatus, ...]:
    """Return the locked images and whether the engine has them.

    Raises:
        SandboxUnavailableError: no engine answers.
        VerificationError: images.lock is damaged.
    """
    locked = read_lock(host.state.images_lock)
    return list_images(open_engine(host), locked) if locked else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedImage:
    """An image whose every byte was hashed.

    Attributes:
        locked: its line.
        size: bytes of its layers.
        init: digest of the init that its workers get.
    """

    locked: LockedImage
    size: int
    init: Digest


def verify_image(host: Host, name: str, *, source: bool = False) -> VerifiedImage:
    """Hash everything the engine holds of an image, and its init, against what is locked.

    Args:
        host: this host.
        name: of the image.
        source: also ask where it came from whether its name still means the same.

    Raises:
        ImageMissingError: it is not locked on this host, or the engine lost it.
        VerificationError: some bytes are not those of the id, or its name was moved.
        InputError: there is nobody to ask where it came from.
        AcquisitionError: the registry does not answer.
        SandboxUnavailableError: the engine does not answer, or refuses.
        StateError: a build is at work on this state folder.
    """
    locked = find_locked(host.state.images_lock, name)
    engine = open_engine(host)
    if source:
        _check_source(host, locked)
    size = hash_image(engine, locked.image)
    return VerifiedImage(
        locked=locked, size=size, init=check_locked_init(engine, locked, host.state)
    )


def _check_source(host: Host, locked: LockedImage) -> None:
    engine, origin = open_engine(host), locked.origin
    if origin is None or origin.kind == "archive":
        raise InputError(
            f"image {locked.image.name}: came from {origin or 'its definition'}: nobody to ask",
            hint="leave --source out",
        )
    if origin.kind == "registry":
        reference = parse_reference(origin.reference)
        check_unmoved(locked, reference, resolve_remote(engine, reference).digest)
        return
    found = find_on_engine(engine, origin.reference)
    if found is None:
        raise ImageMissingError(
            f"image {locked.image.name}: the engine has no {origin.reference} any more"
        )
    if found.digest != origin.digest:
        raise VerificationError(
            f"image {locked.image.name}: {origin.reference}: expected the locked {origin.digest}, "
            f"got {found.digest}: the name was moved"
        )
