"""Volumes of the fake engine: folders on disk, reached by archives as a container would.

A plain volume has a folder of its own; one with an overlay's options is the lower folders and the
upper one, merged no further than reading one file needs.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import weakref
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import BinaryIO

from harness.errors import SandboxUnavailableError
from harness.execution.engine.port import VolumeSpec

TOP = PurePosixPath("/workspace")


class FakeVolume:
    """One volume, mounted at /workspace."""

    def __init__(self, spec: VolumeSpec) -> None:
        self.spec = spec
        self._own = Path(mkdtemp(prefix="fake-volume-"))
        self._removal = weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        options = dict(
            part.partition("=")[::2] for part in spec.options.get("o", "").split(",") if part
        )
        self.upper = Path(options.get("upperdir", self._own))
        self.folders = [
            self.upper,
            *map(Path, filter(None, options.get("lowerdir", "").split(":"))),
        ]

    def unpack(self, path: str, tar: BinaryIO | Iterable[bytes]) -> None:
        """Take an archive in; an error of its pieces comes through."""
        data = tar.read() if hasattr(tar, "read") else b"".join(tar)
        place = PurePosixPath(path)
        with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as archive:
            for member in archive:
                below = (place / member.name).relative_to(TOP)
                changed = member.replace(name=str(below), deep=False)
                archive.extract(changed, self.upper, filter="fully_trusted")

    def pack(self, path: str) -> bytes:
        """Return the archive of a path."""
        if not PurePosixPath(path).is_relative_to(TOP):
            raise SandboxUnavailableError("engine: container.copy-out: no such path")
        below = PurePosixPath(path).relative_to(TOP)
        found = [folder / below for folder in self.folders if (folder / below).exists()]
        if not found:
            raise SandboxUnavailableError("engine: container.copy-out: no such path")
        archive = io.BytesIO()
        with tarfile.open(
            fileobj=archive, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape"
        ) as tar:
            tar.add(found[0], arcname=PurePosixPath(path).name)
        return archive.getvalue()

    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(
            path.lstat().st_size
            for path in self.upper.rglob("*")
            if path.is_symlink() or path.is_file()
        )

    def remove(self) -> None:
        """Remove what is its own."""
        self._removal()
