"""One image of an archive: chosen by name and platform, its layers verified whole.

Rules:
    * Where several images would do, the caller says which; nothing is guessed.
    * Of the config only platform and layers are used. Entrypoint, environment, user and the rest
      are named, so that a person sees what a worker will not get.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError, Issue, VerificationError
from harness.execution.image.archive import Layer
from harness.execution.image.layer_scan import scan_layer
from harness.execution.image.pieces import unzipped
from harness.execution.image.saved_archive import SavedArchive
from harness.model.digest import Digest

MAX_LAYERS = 126
"""overlay2 stacks at most 128 folders; init's layer and the container's own come on top."""

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTINGS = (
    *("Entrypoint", "Cmd", "User", "WorkingDir", "Volumes", "ExposedPorts", "OnBuild"),
    *("Healthcheck", "StopSignal", "Shell"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedImage:
    """One image of an archive.

    Attributes:
        names: what the archive calls it; often none.
        image_id: digest of its config.
        config: what the config says.
        files: names of its layers' files, lowest first.
    """

    names: tuple[str, ...]
    image_id: Digest
    config: Mapping[str, Any]
    files: tuple[str, ...]

    @property
    def platform(self) -> str:
        """Return `linux/amd64`, say."""
        return f"{self.config.get('os')}/{self.config.get('architecture')}"

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the settings of the config that a worker does not get."""
        settings = self.config.get("config")
        if not isinstance(settings, dict):
            return ()
        env = settings.get("Env")
        names = {str(item).partition("=")[0] for item in env} if isinstance(env, list) else set()
        return (
            *(name for name in _SETTINGS if settings.get(name)),
            *(f"Env {name}" for name in sorted(names) if _ENV_NAME.fullmatch(name)),
        )


def choose_image(
    images: tuple[SavedImage, ...], wanted: str, platform: str, what: str
) -> SavedImage:
    """Choose one image.

    Args:
        images: of an archive.
        wanted: a name in the archive or an image id; empty when it was not said.
        platform: of the engine.
        what: names the archive, for messages.

    Raises:
        InputError: none or several are meant, or none is for the engine's platform.
    """
    named = [image for image in images if not wanted or wanted in (*image.names, image.image_id)]
    if not named:
        raise InputError(f"{what}: holds no image {wanted!r:.100}", issues=_listed(images))
    fitting = [image for image in named if image.platform == platform]
    if not fitting:
        raise InputError(
            f"{what}: expected an image for {platform}, the engine's platform, "
            f"got {', '.join(sorted({image.platform for image in named}))!r:.100}",
            hint="take the image of the engine's platform; none is emulated",
        )
    if len(fitting) > 1:
        raise InputError(
            f"{what}: expected one image, got {len(fitting)}; say which with --image",
            issues=_listed(tuple(fitting)),
        )
    return fitting[0]


def image_layers(archive: SavedArchive, image: SavedImage) -> tuple[Layer, ...]:
    """Read every layer of an image once, and return them, unpacked and verified.

    Raises:
        InputError: the config names no layers or too many, or a layer is no usable tar archive.
        VerificationError: a layer has another digest than the config says.
        StateError: it can't be read.
    """
    what = archive.what
    rootfs = image.config.get("rootfs")
    listed = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_LAYERS:
        raise InputError(f"{what}: expected 1 to {MAX_LAYERS} layers in the image's config")
    if len(listed) != len(image.files):
        raise InputError(
            f"{what}: expected {len(listed)} layers by the config, got {len(image.files)}"
        )
    layers = []
    for number, (name, digest) in enumerate(zip(image.files, listed, strict=True), 1):
        place = f"{what}: layer {number} of {len(listed)}"
        found, size = scan_layer(unzipped(archive.pieces(name), place), place)
        if found != digest:
            raise VerificationError(f"{place}: expected {digest!s:.80}, got {found}")
        layers.append(Layer(digest=found, size=size, read=_reader(archive, name, place)))
    return tuple(layers)


def _reader(archive: SavedArchive, name: str, place: str) -> Callable[[], Iterator[bytes]]:
    return lambda: unzipped(archive.pieces(name), place)


def _listed(images: tuple[SavedImage, ...]) -> tuple[Issue, ...]:
    return tuple(
        Issue(
            message=f"{', '.join(image.names) or 'without a name'}: {image.image_id}",
            where=image.platform,
        )
        for image in images
    )
