"""The images that an archive holds, found by its manifests.

Formats: `docker save` (Docker Image Specification v1.2, "combined image JSON"), and the OCI image
layout (v1.1) in one tar archive; a newer `docker save` writes both, and the first is read.

Rule: every digest that is named on the way is checked: of an index, a manifest and a config.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.errors import HarnessError, InputError, VerificationError
from harness.execution.image.saved_archive import NOT_AN_IMAGE, SavedArchive
from harness.execution.image.saved_image import SavedImage
from harness.model.canonical import parse_json
from harness.model.digest import PREFIX, digest_of, parse_digest

MAX_ITEMS = 200
"""Most items of a list in a manifest, and most manifests of an archive."""

_NAME = "org.opencontainers.image.ref.name"
_FULL_NAME = "io.containerd.image.name"
_MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_HEX_NAME = re.compile(r"(?:blobs/sha256/)?([0-9a-f]{64})(?:\.json)?")


def saved_images(archive: SavedArchive) -> tuple[SavedImage, ...]:
    """Return the images of an archive, each once.

    Raises:
        InputError: it holds none, or a malformed one.
        VerificationError: a file has another digest than its name or descriptor says.
        StateError: it can't be read.
    """
    if archive.has("manifest.json"):
        found = list(_docker_images(archive))
    elif archive.has("index.json"):
        found = list(_layout_images(archive))
    else:
        raise InputError(
            f"{archive.what}: expected manifest.json or index.json in it", hint=NOT_AN_IMAGE
        )
    if not found:
        raise InputError(f"{archive.what}: holds no image", hint=NOT_AN_IMAGE)
    return tuple({image.image_id: image for image in reversed(found)}.values())[::-1]


# ---- docker save ----


def _docker_images(archive: SavedArchive) -> Iterator[SavedImage]:
    for item in _array(_json(archive, "manifest.json"), f"{archive.what}: manifest.json"):
        try:
            config_name, tags, files = item["Config"], item["RepoTags"] or (), item["Layers"] or ()
            names = tuple(str(tag) for tag in tags)
            layers = tuple(str(name) for name in files)
        except (KeyError, TypeError) as error:
            raise InputError(f"{archive.what}: manifest.json: is malformed") from error
        yield _image(archive, names, str(config_name), layers)


def _image(
    archive: SavedArchive, names: tuple[str, ...], config_name: str, files: tuple[str, ...]
) -> SavedImage:
    raw = archive.small(config_name)
    found, named = digest_of(raw), _HEX_NAME.fullmatch(config_name)
    if named and found != PREFIX + named[1]:
        raise VerificationError(f"{archive.what}: config {config_name:.80}: has digest {found}")
    config = _parse(raw, f"{archive.what}: the image's config")
    if not isinstance(config, dict):
        raise InputError(f"{archive.what}: the image's config: is malformed")
    return SavedImage(names=names, image_id=found, config=config, files=files)


# ---- OCI image layout ----


def _layout_images(archive: SavedArchive) -> Iterator[SavedImage]:
    pending = [(_json(archive, "index.json"), "")]
    count = 0
    while pending:
        index, inherited = pending.pop(0)
        for item in _array(_member(index, "manifests"), f"{archive.what}: index.json"):
            count += 1
            if count > MAX_ITEMS:
                raise InputError(f"{archive.what}: expected at most {MAX_ITEMS} manifests")
            notes = _member(item, "annotations")
            name = _member(notes, _FULL_NAME) or _member(notes, _NAME) or inherited
            kind = _member(item, "mediaType")
            if kind in _INDEX_TYPES:
                pending.append((_blob(archive, item), str(name)))
            elif kind in _MANIFEST_TYPES and not _is_attestation(item):
                yield _layout_image(archive, _blob(archive, item), str(name))


def _layout_image(archive: SavedArchive, manifest: Any, name: str) -> SavedImage:
    layers = _array(_member(manifest, "layers"), f"{archive.what}: a manifest's layers")
    return _image(
        archive,
        (name,) if name else (),
        _blob_name(archive, _member(manifest, "config")),
        tuple(_blob_name(archive, layer) for layer in layers),
    )


def _is_attestation(item: Any) -> bool:
    """Tell whether a manifest holds statements about an image: BuildKit gives it no platform."""
    return bool(_member(_member(item, "platform"), "os") == "unknown")


def _blob(archive: SavedArchive, descriptor: Any) -> Any:
    name = _blob_name(archive, descriptor)
    raw = archive.small(name)
    if digest_of(raw) != descriptor["digest"]:
        raise VerificationError(f"{archive.what}: {name:.90}: has digest {digest_of(raw)}")
    return _parse(raw, f"{archive.what}: {name:.90}")


def _blob_name(archive: SavedArchive, descriptor: Any) -> str:
    try:
        digest = parse_digest(_member(descriptor, "digest"))
    except HarnessError as error:
        raise InputError(f"{archive.what}: a descriptor: {error.message}") from error
    return f"blobs/sha256/{digest.removeprefix(PREFIX)}"


# ---- JSON of somebody else ----


def _json(archive: SavedArchive, name: str) -> Any:
    return _parse(archive.small(name), f"{archive.what}: {name}")


def _parse(raw: bytes, what: str) -> Any:
    try:
        return parse_json(raw)
    except InputError as error:
        raise InputError(f"{what}: {error.message}") from error


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _array(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise InputError(f"{what}: expected a list of at most {MAX_ITEMS}")
    return value
