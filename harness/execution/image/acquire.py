"""Acquire an image that exists: from an archive, from the engine, or from a registry.

Rules:
    * Whatever it is, it becomes one archive in a folder of ours, so that it can't change any more
      while it is read, and one reader checks every byte of it.
    * A registry's name is resolved to a digest first, and fetched by that digest. What was fetched
      for this alone is removed from the engine again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import (
    AcquisitionError,
    HarnessError,
    InputError,
    StateError,
    VerificationError,
)
from harness.execution.engine.port import ImageInfo
from harness.execution.engine.registry import RegistryEngine, RemoteImage
from harness.execution.image.origin import OriginKind
from harness.execution.image.pieces import Counted, read_pieces, unzipped
from harness.execution.image.reference import Reference
from harness.model.digest import Digest
from harness.store.durable import state_error

MIN_FREE_BYTES = 1024**3
"""What an archive must leave free on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An image that was found and not read yet.

    Attributes:
        kind: where.
        reference: its name there.
        digest: what the name means.
        image_id: of the image at the engine; None for an archive, which may hold several.
    """

    kind: OriginKind
    reference: str
    digest: Digest
    image_id: Digest | None = None


def take_archive(path: Path, target: Path) -> Found:
    """Copy an archive of the caller's, unpacked when gzip packed it.

    Args:
        path: a regular file.
        target: takes the tar archive.

    Raises:
        InputError: no regular file, or broken gzip.
        StateError: it can't be read, or the disk is full.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"archive {path.name}: expected a regular file")
            counted = Counted(read_pieces(stream))
            write_archive(unzipped(iter(counted), f"archive {path.name}"), target)
    except OSError as error:
        raise InputError(f"archive {path}: {error.strerror}") from error
    return Found(kind="archive", reference=path.name, digest=counted.digest)


def find_on_engine(engine: RegistryEngine, name: str) -> Found | None:
    """Find an image that the engine has, by name or id."""
    info = engine.find_image(name)
    if info is None:
        return None
    return Found(kind="engine", reference=name, digest=info.image_id, image_id=info.image_id)


def resolve_remote(engine: RegistryEngine, reference: Reference) -> RemoteImage:
    """Ask a registry what a reference means.

    Raises:
        AcquisitionError: it does not answer, refuses, or has no such image.
        VerificationError: it answers with another digest than the one asked for.
    """
    wanted = f"@{reference.digest}" if reference.digest else f":{reference.tag}"
    remote = engine.resolve(f"{reference.repository}{wanted}")
    if reference.digest and remote.digest != reference.digest:
        raise VerificationError(
            f"registry: {reference}: expected {reference.digest}, got {remote.digest}"
        )
    return remote


@contextlib.contextmanager
def pulled(
    engine: RegistryEngine, reference: Reference, digest: Digest, platform: str
) -> Iterator[Found]:
    """Fetch an image by digest for the block; it is removed again when it was not there before.

    Raises:
        AcquisitionError: the registry does not answer, refuses, or has no such image there.
    """
    name = f"{reference.repository}@{digest}"
    was_there = engine.find_image(name) is not None
    try:
        engine.pull(reference.repository, digest, platform)
        info: ImageInfo | None = engine.find_image(name)
        if info is None:
            raise AcquisitionError(f"registry: {name}: the engine does not have it after the pull")
        yield Found(
            kind="registry", reference=str(reference), digest=digest, image_id=info.image_id
        )
    finally:
        if not was_there:
            with contextlib.suppress(HarnessError):
                engine.untag(name)


def write_archive(pieces: Iterator[bytes], target: Path) -> None:
    """Write an archive, never into the last free gigabyte of a disk.

    Raises:
        StateError: the disk is full.
        HarnessError: what the pieces raise.
    """
    try:
        with target.open("wb") as stream:
            for piece in pieces:
                if shutil.disk_usage(target.parent).free < MIN_FREE_BYTES + len(piece):
                    raise StateError(
                        f"archive: expected {MIN_FREE_BYTES} bytes to stay free below the state",
                        hint="free some disk space, or set HARNESS_STATE to another disk",
                    )
                stream.write(piece)
    except OSError as error:
        raise state_error("write the image's archive", error) from error
