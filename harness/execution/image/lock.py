"""images.lock: which content id each image name means on this host.

Format (`harness/images/v2`; version 1 had neither `init` nor `source`): canonical JSON, one item
per image, sorted by name. Only a finished build or addition writes it, and only whole. What the
engine calls an image by name is never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ImageMissingError, InputError, VerificationError
from harness.execution.image.origin import Origin, parse_origin
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.clock import parse_time
from harness.model.digest import Digest, parse_digest
from harness.model.image import Image, parse_image, parse_image_name
from harness.store.durable import state_error, write_durably
from harness.store.lock import hold_lock

LOCK_KIND = "harness/images/v2"
OLDER = "harness/images/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedImage:
    """An image, when it was locked, and what it was made of.

    Attributes:
        image: what a seal takes.
        built_on: RFC 3339 time of the build or addition.
        init: digest of the init in it; None in a line that an older version wrote.
        origin: where it came from; None for one that was built from its definition.
    """

    image: Image
    built_on: str
    init: Digest | None = None
    origin: Origin | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members of its line; what is None is left out."""
        members = {**self.image.to_json(), "builtOn": self.built_on}
        if self.init:
            members["init"] = self.init
        if self.origin:
            members["source"] = self.origin.to_json()
        return members


def read_lock(path: Path) -> dict[str, LockedImage]:
    """Return the locked images by name; none when there is no file yet.

    Raises:
        VerificationError: the file is not what a build wrote.
        StateError: it can't be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
    try:
        value = parse_canonical(data, LOCK_KIND, OLDER)
        locked = {item["name"]: _parse_item(item) for item in value["images"]}
    except (InputError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if lock_bytes(locked, value["_type"]) != data:
        raise _damaged(path, "unknown members, or not sorted")
    return locked


def lock_bytes(images: dict[str, LockedImage], kind: str = LOCK_KIND) -> bytes:
    """Return the canonical bytes of the lock file, as a version of harness writes it."""
    items = [images[name].to_json() for name in sorted(images)]
    return canonical_bytes({"_type": kind, "images": items})


def lock_image(path: Path, locked: LockedImage) -> None:
    """Make a name mean an image, durably; the other names stay.

    Raises:
        VerificationError: the file is not what a build wrote.
        StateError: the file can't be written.
    """
    beside = path.with_name(f"{path.name}.flock")
    with hold_lock(beside, wait_seconds=10, busy=f"{path.name}: another command writes it"):
        images = read_lock(path)
        images[locked.image.name] = locked
        write_durably(path, lock_bytes(images))


def resolve_image(path: Path, name: str) -> Image:
    """Return what a name means.

    Raises:
        InputError: not the form of a name.
        ImageMissingError: it was neither built nor added on this host.
        VerificationError: the file is not what a build wrote.
        StateError: it can't be read.
    """
    return find_locked(path, name).image


def find_locked(path: Path, name: str) -> LockedImage:
    """Return the line of a name.

    Raises:
        InputError: not the form of a name.
        ImageMissingError: it was neither built nor added on this host.
        VerificationError: the file is not what a build wrote.
        StateError: it can't be read.
    """
    images = read_lock(path)
    if parse_image_name(name) not in images:
        raise ImageMissingError(
            f"image {name}: is not built on this host",
            hint=f"run `harness image build {name}`, or `harness image add {name} REF`",
        )
    return images[name]


def _damaged(path: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{path.name}: not as a build wrote it: {why}",
        hint=f"move {path} away and build the images again",
    )


def _parse_item(item: dict[str, Any]) -> LockedImage:
    parse_time(item["builtOn"])
    return LockedImage(
        image=parse_image(item),
        built_on=item["builtOn"],
        init=parse_digest(item["init"]) if "init" in item else None,
        origin=parse_origin(item["source"]) if "source" in item else None,
    )
