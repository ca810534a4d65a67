"""Add an image that exists: its layers as they are, our init on top as one layer, our own config.

Rules:
    * The id follows from the content: the same image and the same init give the same id anywhere.
    * The config is ours: no entrypoint, environment, user, volume, trigger or health check comes
      along. What was left out is reported.
    * It is for the engine's platform; none is emulated.
    * A name that means another image keeps its meaning, unless the caller says that it moves.
    * A failure leaves no name, no image, no container and no folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import AcquisitionError, ImageMissingError, InputError, VerificationError
from harness.execution.engine.registry import RegistryEngine
from harness.execution.engine.spec import INIT_PATH
from harness.execution.image.acquire import (
    Found,
    find_on_engine,
    pulled,
    resolve_remote,
    take_archive,
    write_archive,
)
from harness.execution.image.archive import ImageSource, layer_of
from harness.execution.image.definition import InitSource
from harness.execution.image.finish import (
    OTHER_STORE,
    check_architecture,
    finish_image,
    image_of,
)
from harness.execution.image.init_binary import init_binary
from harness.execution.image.init_layer import INIT_FOLDER, MAX_INIT, init_inside, init_layer
from harness.execution.image.lock import LockedImage, read_lock
from harness.execution.image.offline import run_offline
from harness.execution.image.origin import Origin, added_definition
from harness.execution.image.reference import Reference
from harness.execution.image.room import Room, hold_room
from harness.execution.image.saved_archive import SavedArchive
from harness.execution.image.saved_image import choose_image, image_layers
from harness.execution.image.saved_manifests import saved_images
from harness.execution.image.workshop import Workshop
from harness.model.digest import Digest, digest_of
from harness.model.image import LABEL_DEFINITION, LABEL_IMAGE
from harness.store.state import StateFolder

CHECK_SECONDS = 60
INIT_USAGE = 64
"""What init ends with when it does not know an argument (EX_USAGE): so it can be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageAddition:
    """Everything one addition needs.

    Attributes:
        name: what recipes will call it.
        source: an archive's path, an engine's image id, or a reference.
        chosen: which image of an archive with several; empty when it was not said.
        replace: the name may mean another image from now on.
        init: init's sources.
        engine: takes the image, and speaks to registries.
        state: of this host.
        environment: of the caller.
        report: is told what happens now, for people.
        mirror: address of a Debian mirror, for init's compiler; empty for debootstrap's own.
    """

    name: str
    source: Path | Digest | Reference
    chosen: str
    replace: bool
    init: InitSource
    engine: RegistryEngine
    state: StateFolder
    environment: Mapping[str, str]
    report: Callable[[str], None]
    mirror: str = ""


def add_image(addition: ImageAddition, *, added_on: str) -> LockedImage:
    """Add an image, check, name and lock it.

    Args:
        addition: everything it needs.
        added_on: RFC 3339 time, for the lock file.

    Returns:
        Its line in images.lock; the old one when nothing is new.

    Raises:
        InputError: the archive is no image, holds several, or is for another platform; or the
            name means another image.
        AcquisitionError: the registry does not answer, or has no such image.
        VerificationError: a digest is not the one that was named, or a locked tag was moved.
        ImageMissingError: the engine has no such image.
        SandboxUnavailableError: the host or the engine can't.
        StateError: the state folder can't be written, or another build is at work.
    """
    architecture = check_architecture(addition.engine)
    with hold_room(addition.state) as room:
        held = read_lock(addition.state.images_lock).get(addition.name)
        with _acquired(addition, architecture, held, room) as (found, archive):
            addition.report("image: hash every layer of it")
            source, origin, init = _read(addition, architecture, found, archive, room)
            locked = LockedImage(
                image=image_of(source), built_on=added_on, init=digest_of(init), origin=origin
            )
            if held and held.image == locked.image and _is_there(addition.engine, held):
                addition.report(f"image: {addition.name} is this image already")
                return held
            _check_name(addition, held, locked)
            finish_image(
                addition.engine,
                addition.state,
                source,
                locked,
                check=lambda: _check(addition, source.image_id, init, room),
                report=addition.report,
            )
            return locked


@contextlib.contextmanager
def _acquired(
    addition: ImageAddition, architecture: str, held: LockedImage | None, room: Room
) -> Iterator[tuple[Found, Path]]:
    """Give what was found and its archive in the room."""
    engine, source, target = addition.engine, addition.source, room.folder / "image.tar"
    if isinstance(source, Path):
        addition.report(f"image: read the archive {source.name}")
        yield take_archive(source, target), target
        return
    if not isinstance(source, Reference) or not source.host:
        found = find_on_engine(engine, str(source))
        if found:
            addition.report(f"image: the engine has {found.reference}")
            _save(engine, found, target)
            yield found, target
            return
        if not isinstance(source, Reference):
            raise ImageMissingError(
                f"image {source}: the engine does not have it",
                hint="`docker images --no-trunc` lists the ids that it has",
            )
    addition.report(f"registry: ask what {source} means")
    remote = _resolve(addition, source, architecture, held)
    addition.report(f"registry: fetch {source.repository}@{remote}")
    with pulled(engine, source, remote, f"linux/{architecture}") as fetched:
        _save(engine, fetched, target)
        yield fetched, target


def _resolve(
    addition: ImageAddition, source: Reference, architecture: str, held: LockedImage | None
) -> Digest:
    """Return the digest that a reference means, if that may be fetched."""
    try:
        remote = resolve_remote(addition.engine, source)
    except AcquisitionError as error:
        here = addition.engine.find_image(str(source))
        if here is None:
            raise
        raise AcquisitionError(
            error.message, hint=f"to take the one that the engine has, name its id: {here.image_id}"
        ) from error
    platform = f"linux/{architecture}"
    if remote.platforms and platform not in remote.platforms:
        raise InputError(
            f"image {source}: expected {platform}, the engine's platform, "
            f"got {', '.join(remote.platforms)!r:.200}",
            hint="take the image of the engine's platform; none is emulated",
        )
    if held and not addition.replace:
        check_unmoved(held, source, remote.digest)
    return remote.digest


def check_unmoved(held: LockedImage, source: Reference, digest: Digest) -> None:
    """Check that a reference still means what a locked image was fetched by.

    Raises:
        VerificationError: it means another digest now.
    """
    origin = held.origin
    if origin is None or (origin.kind, origin.reference) != ("registry", str(source)):
        return
    if origin.digest != digest:
        raise VerificationError(
            f"image {held.image.name}: {source}: expected the locked {origin.digest}, "
            f"got {digest}: the tag was moved",
            hint="find out who moved it; `harness image add --replace` takes the new one",
        )


def _save(engine: RegistryEngine, found: Found, target: Path) -> None:
    if found.image_id:
        write_archive(engine.save_image(found.image_id), target)


def _read(
    addition: ImageAddition, architecture: str, found: Found, path: Path, room: Room
) -> tuple[ImageSource, Origin, bytes]:
    """Read the archive; return the image it becomes, where it came from, and init's program."""
    archive = SavedArchive(path, f"{found.kind} {found.reference}")
    image = choose_image(
        saved_images(archive), addition.chosen, f"linux/{architecture}", archive.what
    )
    if found.image_id not in (None, image.image_id):
        raise VerificationError(
            f"{archive.what}: expected the config {found.image_id}, got {image.image_id}",
            hint=OTHER_STORE,
        )
    layers = image_layers(archive, image)
    if image.left_out:
        addition.report(f"image: left out of its config: {', '.join(image.left_out)}")
    init = _init(addition, architecture, room)
    labels = {
        LABEL_IMAGE: addition.name,
        LABEL_DEFINITION: added_definition(addition.name, image.image_id, digest_of(init)),
    }
    source = ImageSource(
        architecture=architecture, layers=(*layers, layer_of(init_layer(init))), labels=labels
    )
    origin = Origin(
        kind=found.kind,
        reference=found.reference,
        digest=found.digest,
        content=image.image_id,
    )
    return source, origin, init


def _init(addition: ImageAddition, architecture: str, room: Room) -> bytes:
    shop = Workshop(
        folder=room.folder,
        log=room.log,
        environment=addition.environment,
        mirror=addition.mirror,
        report=addition.report,
    )
    return init_binary(addition.init, architecture=architecture, state=addition.state, shop=shop)


def _is_there(engine: RegistryEngine, held: LockedImage) -> bool:
    return engine.find_image(held.image.image_id) is not None


def _check_name(addition: ImageAddition, held: LockedImage | None, locked: LockedImage) -> None:
    if held and not addition.replace and held.image.image_id != locked.image.image_id:
        raise InputError(
            f"image {addition.name}: is locked to {held.image.image_id}, "
            f"from {held.origin or 'its definition'}",
            hint="choose another name, or say `--replace`",
        )


def _check(addition: ImageAddition, image_id: Digest, init: bytes, room: Room) -> None:
    """Check in a container that what the engine would start is our init."""
    made = run_offline(
        addition.engine,
        image_id,
        (INIT_PATH, "--hold-ms", "none"),
        what="start of init",
        state=addition.state,
        log=room.log,
        seconds=CHECK_SECONDS,
        fetch=(f"/{INIT_FOLDER}", MAX_INIT),
        expect=INIT_USAGE,
    )
    found = init_inside(made, f"image {addition.name}")
    if found != digest_of(init):
        raise VerificationError(
            f"image {addition.name}: init: expected {digest_of(init)}, got {found}",
            hint="this engine does not lay layers out as it should; use another one",
        )
