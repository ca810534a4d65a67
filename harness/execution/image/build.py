"""Build a worker image: everything comes from outside first, then all goes on offline.

Rules:
    * Acquired on the host: the base (apt and debootstrap check the archive's signature) and the
      wheels (pip checks their hashes). Containers of a build have no network.
    * A name becomes usable last: after the image was loaded, checked by running it, and tagged.
      A build that fails or is interrupted leaves no name, no image, no container, no folder.
    * One build at a time per state folder; the next one clears what a killed one left.
"""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.execution.engine.port import ImageEngine
from harness.execution.image.archive import ImageSource, Layer, layer_of
from harness.execution.image.base import BaseSpec, base_layer
from harness.execution.image.definition import ImageDefinition, Wheels
from harness.execution.image.dependencies import download_wheels
from harness.execution.image.finish import (
    check_architecture,
    finish_image,
    image_of,
    load_source,
)
from harness.execution.image.init_binary import init_binary
from harness.execution.image.layer import rewrite_layer
from harness.execution.image.lock import LockedImage
from harness.execution.image.offline import run_offline
from harness.execution.image.room import Room, hold_room
from harness.execution.image.workshop import Workshop
from harness.model.digest import digest_of
from harness.model.image import LABEL_DEFINITION, LABEL_IMAGE
from harness.store.durable import state_error
from harness.store.state import StateFolder

MAX_LAYER = 1024**3
INSTALL_SECONDS = 600
CHECK_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBuild:
    """Everything one build needs.

    Attributes:
        definition: what to build.
        engine: takes the image.
        state: of this host.
        environment: of the caller; pip's settings and the proxies are passed on.
        report: is told what happens now, for people.
        mirror: address of a Debian mirror; empty for debootstrap's own.
        fresh: take nothing from the cache: the packages are those that the archive has now.
    """

    definition: ImageDefinition
    engine: ImageEngine
    state: StateFolder
    environment: Mapping[str, str]
    report: Callable[[str], None]
    mirror: str = ""
    fresh: bool = False


def build_image(build: ImageBuild, *, built_on: str) -> LockedImage:
    """Build, check, name and lock one image.

    Args:
        build: everything it needs.
        built_on: RFC 3339 time, for the lock file.

    Returns:
        The locked image; the same content has the same id as the last time.

    Raises:
        SandboxUnavailableError: the host or the engine can't, or a step of the build fails.
        AcquisitionError: wheels can't be had, or are not the pinned ones.
        VerificationError: images.lock or the cached base is damaged.
        StateError: the state folder can't be written, or another build is at work.
    """
    architecture = check_architecture(build.engine)
    with hold_room(build.state) as room:
        shop = Workshop(
            folder=room.folder,
            log=room.log,
            environment=build.environment,
            mirror=build.mirror,
            report=build.report,
        )
        init = init_binary(
            build.definition.init,
            architecture=architecture,
            state=build.state,
            shop=shop,
            fresh=build.fresh,
        )
        layers = [_base(build, architecture, init, shop)]
        if build.definition.wheels:
            packed = _acquire(build, build.definition.wheels, architecture, room)
            layers.append(_install(build, architecture, layers[0], packed, room))
        labels = {
            LABEL_IMAGE: build.definition.name,
            LABEL_DEFINITION: build.definition.digest,
        }
        source = ImageSource(architecture=architecture, layers=tuple(layers), labels=labels)
        locked = LockedImage(image=image_of(source), built_on=built_on, init=digest_of(init))
        finish_image(
            build.engine,
            build.state,
            source,
            locked,
            check=lambda: _check(build, source, room),
            report=build.report,
        )
        return locked


def _base(build: ImageBuild, architecture: str, init: bytes, shop: Workshop) -> Layer:
    file = build.definition.file
    spec = BaseSpec(
        suite=file.suite,
        packages=file.packages,
        architecture=architecture,
        init=digest_of(init),
    )
    return base_layer(spec, init, build.state, shop, fresh=build.fresh)


def _acquire(build: ImageBuild, wheels: Wheels, architecture: str, room: Room) -> Path:
    """Acquire the wheels; return the archive of what the installing container gets."""
    build.report("dependencies: acquire the pinned wheels")
    lock, pip = room.folder / "requirements.txt", room.folder / "pip.txt"
    folder, packed = room.folder / "wheels", room.folder / "build.tar"
    try:
        lock.write_text("\n".join(wheels.requirements), encoding="utf-8")
        pip.write_text("\n".join(wheels.pip), encoding="utf-8")
        download_wheels(
            (lock, pip),
            folder,
            python_version=wheels.python_version,
            architecture=architecture,
            environment=build.environment,
            log=room.log,
        )
        with tarfile.open(packed, "w") as archive:
            archive.add(wheels.installer, "build/install.py")
            archive.add(lock, "build/lock")
            archive.add(folder, "build/wheels")
    except OSError as error:
        raise state_error("pack the wheels", error) from error
    return packed


def _install(build: ImageBuild, architecture: str, base: Layer, packed: Path, room: Room) -> Layer:
    """Install the wheels in a container of the base; return the layer they make."""
    build.report("dependencies: install them in a container without network")
    below = ImageSource(architecture=architecture, layers=(base,), labels={LABEL_IMAGE: ""})
    try:
        load_source(build.engine, below)
        made = run_offline(
            build.engine,
            below.image_id,
            ("/usr/bin/python3", "/build/install.py", "/build/wheels", "/build/lock", "/out"),
            what="install of the wheels",
            state=build.state,
            log=room.log,
            seconds=INSTALL_SECONDS,
            bring=packed,
            fetch=("/out", MAX_LAYER),
        )
    finally:
        with contextlib.suppress(HarnessError):
            build.engine.remove_image(below.image_id)
    return layer_of(rewrite_layer(made, "out"))


def _check(build: ImageBuild, source: ImageSource, room: Room) -> None:
    run_offline(
        build.engine,
        source.image_id,
        build.definition.file.check,
        what="check of the image",
        state=build.state,
        log=room.log,
        seconds=CHECK_SECONDS,
    )
