"""An image definition: the folder `images/NAME`, and what is baked into every image.

Rule: the definition digest covers the name and bytes of every file that decides what a build
makes: the definition's folder, init's sources and, for an image with wheels, the program of build
containers. Modes do not count, since an installer of wheels does not keep them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.execution.image.definition_file import (
    DefinitionFile,
    read_definition_file,
    read_requirements,
)
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of
from harness.model.image import parse_image_name
from harness.model.tree import Node, folder_bytes, folder_node

DEFINITION_KIND = "harness/image-definition/v3"
"""To be raised when the same definition is built in another way than before, as `BASE_KIND` is."""
DEFINITION_FILE = "image.yaml"
INIT, BUILDER = "init", "builder"
"""Folders beside the definitions that are part of every one; no image can have these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitSource:
    """Where init's sources are.

    Attributes:
        file: its one source file.
        digest: over its folder.
    """

    file: Path
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """What an image with wheels needs on top.

    Attributes:
        python_version: what they are chosen for.
        requirements: each pinned, one line each.
        pip: the wheel of the pip that installs them, in the same way.
        installer: the program that build containers run.
    """

    python_version: str
    requirements: tuple[str, ...]
    pip: tuple[str, ...]
    installer: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDefinition:
    """One definition with the places of its files.

    Attributes:
        name: what recipes call the image.
        file: what its `image.yaml` says.
        wheels: what is installed into it, and by what; None for an image without wheels.
        init: init's sources.
        digest: over all of them.
    """

    name: str
    file: DefinitionFile
    wheels: Wheels | None
    init: InitSource
    digest: Digest


def list_definitions(images: Path) -> tuple[str, ...]:
    """Return the names of the definitions in a folder, sorted."""
    return tuple(sorted(path.parent.name for path in images.glob(f"*/{DEFINITION_FILE}")))


def load_definition(images: Path, name: str) -> ImageDefinition:
    """Read one definition and everything it covers.

    Args:
        images: the folder of the definitions.
        name: of the image.

    Raises:
        InputError: no such definition, or every mistake in one of its files.
    """
    folder = images / parse_image_name(name)
    if name not in list_definitions(images):
        known = ", ".join(list_definitions(images)) or "none"
        raise InputError(f"image {name}: has no definition", hint=f"there are: {known}")
    file = read_definition_file(_read(folder / DEFINITION_FILE), f"{name}/{DEFINITION_FILE}")
    init = load_init(images)
    members = {
        "_type": DEFINITION_KIND,
        "name": name,
        "definition": _folder_digest(folder),
        "init": init.digest,
    }
    wheels = None
    if file.python:
        members["builder"] = _folder_digest(images / BUILDER)
        wheels = Wheels(
            python_version=file.python.version,
            requirements=_read_lock(folder / file.python.requirements),
            pip=_read_lock(images / BUILDER / "pip.lock"),
            installer=images / BUILDER / "install.py",
        )
    return ImageDefinition(
        name=name, file=file, wheels=wheels, init=init, digest=digest_of(canonical_bytes(members))
    )


def load_init(images: Path) -> InitSource:
    """Return init's sources, which every image gets.

    Raises:
        InputError: they can't be read.
    """
    return InitSource(file=images / INIT / "init.c", digest=_folder_digest(images / INIT))


def _read_lock(path: Path) -> tuple[str, ...]:
    return read_requirements(_read(path), f"{path.parent.name}/{path.name}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"image definition: {path.name}: {error.strerror}") from error


def _folder_digest(folder: Path) -> Digest:
    entries: dict[bytes, Node] = {}
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"image definition: {folder.name}: {error.strerror}") from error
    for path in paths:
        if path.name == "__pycache__":  # made by the installer of a wheel
            continue
        if path.is_symlink() or not path.is_file():
            raise InputError(f"image definition: {folder.name}/{path.name}: expected a plain file")
        data = _read(path)
        entries[path.name.encode()] = Node("file", "100644", len(data), digest_of(data))
    return folder_node(folder_bytes(entries)).digest
