"""What differs between two images: packages by version, then files they do not explain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.execution.engine.port import ImageEngine
from harness.execution.image.acquire import write_archive
from harness.execution.image.contents import DPKG_INFO, Contents, image_contents
from harness.execution.image.saved_archive import SavedArchive
from harness.execution.image.saved_image import image_layers
from harness.execution.image.saved_manifests import saved_images
from harness.model.digest import Digest, short

_DPKG = DPKG_INFO.removesuffix("info/")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageChange:
    """A Debian package that is not the same in both.

    Attributes:
        name: of the package.
        before: version; empty when it was not there.
        after: version; empty when it is gone.
    """

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before or 'absent'} -> {self.after or 'absent'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between two images; nothing of both when only their configs do.

    Attributes:
        packages: sorted by name.
        files: sorted paths that no package among those owns.
    """

    packages: tuple[PackageChange, ...]
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "packages": [
                {"name": item.name, "before": item.before, "after": item.after}
                for item in self.packages
            ],
            "files": list(self.files),
        }


def compare_contents(before: Contents, after: Contents) -> Difference:
    """Return what differs between two tables of files."""
    names = sorted({*before.packages, *after.packages})
    packages = tuple(
        PackageChange(
            name=name, before=before.packages.get(name, ""), after=after.packages.get(name, "")
        )
        for name in names
        if before.packages.get(name) != after.packages.get(name)
    )
    explained: set[str] = set()
    for change in packages:
        explained |= before.owned.get(change.name, frozenset())
        explained |= after.owned.get(change.name, frozenset())
    return Difference(
        packages=packages,
        files=tuple(
            path
            for path in sorted({*before.files, *after.files})
            if before.files.get(path) != after.files.get(path)
            and _source(path) not in explained
            and not (packages and path.startswith(_DPKG))
        ),
    )


def _source(path: str) -> str:
    """Return the path itself, or that of the source that byte code was compiled from (PEP 3147)."""
    folder, cache, name = path.rpartition("/__pycache__/")
    return f"{folder}/{name.partition('.')[0]}.py" if cache else path


def compare_images(engine: ImageEngine, before: Digest, after: Digest, folder: Path) -> Difference:
    """Compare two images that an engine has.

    Args:
        engine: has both.
        before: id of the one.
        after: id of the other.
        folder: takes an archive of each, one at a time.

    Raises:
        ImageMissingError: the engine lost one.
        InputError: an archive of the engine's can't be read.
        VerificationError: its bytes are not those of the id.
        StateError: the disk is full.
    """
    return compare_contents(_contents(engine, before, folder), _contents(engine, after, folder))


def _contents(engine: ImageEngine, image_id: Digest, folder: Path) -> Contents:
    path, what = folder / "compared.tar", f"image {short(image_id)}"
    try:
        write_archive(engine.save_image(image_id), path)
        archive = SavedArchive(path, what)
        (image,) = saved_images(archive)
        return image_contents(image_layers(archive, image), what)
    finally:
        path.unlink(missing_ok=True)
