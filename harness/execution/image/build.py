"""Build a worker image: everything comes from outside first, then all goes on offline.

Rules:
    * Acquired on the host: the base (debootstrap checks the archive's signature) and the wheels
      (pip checks their hashes). Containers of a build have no network.
    * A name becomes usable last: after the image was loaded, checked by running it, and tagged.
      A build that fails or is interrupted leaves no name, no image, no container, no folder.
    * One build at a time per state folder; the next one clears what a killed one left.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, ImageMissingError, SandboxUnavailableError
from harness.execution.engine.port import ImageEngine
from harness.execution.image.archive import ImageSource, Layer, layer_of
from harness.execution.image.base import BaseSpec, Workshop, build_base
from harness.execution.image.base_cache import cached_layer, store_layer
from harness.execution.image.definition import ImageDefinition
from harness.execution.image.dependencies import download_wheels
from harness.execution.image.layer import rewrite_layer
from harness.execution.image.lock import LockedImage, lock_image, read_lock
from harness.execution.image.offline import run_offline
from harness.execution.image.verify import LABEL_DEFINITION, LABEL_IMAGE
from harness.model.digest import short
from harness.model.image import Image
from harness.store.durable import state_error
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

ARCHITECTURES = ("amd64", "arm64")
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
    """

    definition: ImageDefinition
    engine: ImageEngine
    state: StateFolder
    environment: Mapping[str, str]
    report: Callable[[str], None]
    mirror: str = ""

    @property
    def log(self) -> Path:
        """Return the file that takes what programs print; each build starts it anew."""
        return self.state.images / "build.log"


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
    architecture = build.engine.info().architecture
    if architecture not in ARCHITECTURES:
        raise SandboxUnavailableError(
            f"engine: expected one of {', '.join(ARCHITECTURES)}, got {architecture!r:.40}"
        )
    busy = "image build: another build is at work on this state folder"
    with (
        hold_lock(build.state.images / "lock", wait_seconds=0, busy=busy),
        _work_folder(build) as work,
    ):
        base = _base_layer(build, architecture, work)
        source = _install(build, architecture, base, _acquire(build, architecture, work))
        return _finish(build, source, built_on)


@contextlib.contextmanager
def _work_folder(build: ImageBuild) -> Iterator[Path]:
    """Give a folder that is gone afterwards; remove those of builds that were killed."""
    try:
        for left in build.state.images.glob("work-*"):
            shutil.rmtree(left)
        build.log.write_bytes(b"")
        work = build.state.images / f"work-{secrets.token_hex(4)}"
        work.mkdir(mode=0o700)
    except OSError as error:
        raise state_error("prepare a build", error) from error
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _base_layer(build: ImageBuild, architecture: str, work: Path) -> Layer:
    """Return the base's layer: cached by its key, or built now."""
    file = build.definition.file
    spec = BaseSpec(
        suite=file.suite,
        packages=file.packages,
        architecture=architecture,
        init=build.definition.init_digest,
    )
    cached = cached_layer(build.state, spec.key)
    if cached:
        build.report(f"base: {short(cached.digest)} is cached")
        return cached
    shop = Workshop(
        folder=work,
        log=build.log,
        environment=build.environment,
        mirror=build.mirror,
        report=build.report,
    )
    tree = build_base(spec, build.definition.init, shop)
    build.report("base: store its layer")
    return store_layer(build.state, spec.key, tree)


def _acquire(build: ImageBuild, architecture: str, work: Path) -> Path:
    """Acquire the wheels; return the archive of what the installing container gets."""
    build.report("dependencies: acquire the pinned wheels")
    definition = build.definition
    lock, pip, wheels = work / "requirements.txt", work / "pip.txt", work / "wheels"
    packed = work / "build.tar"
    try:
        lock.write_text("\n".join(definition.requirements), encoding="utf-8")
        pip.write_text("\n".join(definition.pip), encoding="utf-8")
        download_wheels(
            (lock, pip),
            wheels,
            python_version=definition.file.python_version,
            architecture=architecture,
            environment=build.environment,
            log=build.log,
        )
        with tarfile.open(packed, "w") as archive:
            archive.add(definition.installer, "build/install.py")
            archive.add(lock, "build/lock")
            archive.add(wheels, "build/wheels")
    except OSError as error:
        raise state_error("pack the wheels", error) from error
    return packed


def _install(build: ImageBuild, architecture: str, base: Layer, packed: Path) -> ImageSource:
    """Install the wheels in a container of the base; return the image of both layers."""
    build.report("dependencies: install them in a container without network")
    definition = build.definition
    below = ImageSource(architecture=architecture, layers=(base,), labels={LABEL_IMAGE: ""})
    try:
        _load(build.engine, below)
        made = run_offline(
            build.engine,
            below.image_id,
            ("/usr/bin/python3", "/build/install.py", "/build/wheels", "/build/lock", "/out"),
            what="install of the wheels",
            state=build.state,
            log=build.log,
            seconds=INSTALL_SECONDS,
            bring=packed,
            fetch=("/out", MAX_LAYER),
        )
    finally:
        with contextlib.suppress(HarnessError):
            build.engine.remove_image(below.image_id)
    labels = {LABEL_IMAGE: definition.name, LABEL_DEFINITION: definition.digest}
    layers = (base, layer_of(rewrite_layer(made, "out")))
    return ImageSource(architecture=architecture, layers=layers, labels=labels)


def _finish(build: ImageBuild, source: ImageSource, built_on: str) -> LockedImage:
    """Load the image, run its check, then give it its name; a failure removes it again."""
    definition, engine = build.definition, build.engine
    kept = {locked.image.image_id for locked in read_lock(build.state.images_lock).values()}
    image = Image(
        name=definition.name,
        image_id=source.image_id,
        platform=f"linux/{source.architecture}",
        definition=definition.digest,
    )
    locked = LockedImage(image=image, built_on=built_on)
    build.report(f"image: load {short(image.image_id)} into the engine and check it offline")
    try:
        _load(engine, source)
        run_offline(
            engine,
            image.image_id,
            definition.file.check,
            what="check of the image",
            state=build.state,
            log=build.log,
            seconds=CHECK_SECONDS,
        )
        engine.tag(image.image_id, f"harness/{definition.name}:latest")
        lock_image(build.state.images_lock, locked)
    except BaseException:
        if image.image_id not in kept:
            with contextlib.suppress(HarnessError):
                engine.remove_image(image.image_id)
        raise
    build.report(f"image: {definition.name} is {image.image_id}")
    return locked


def _load(engine: ImageEngine, source: ImageSource) -> None:
    engine.load_image(source.archive())
    try:
        engine.image(source.image_id)
    except ImageMissingError as error:
        raise SandboxUnavailableError(
            f"engine: expected the image {source.image_id} after loading it",
            hint="use an engine whose image store names images by their config (overlay2)",
        ) from error
