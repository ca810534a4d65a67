"""An image archive on disk as a table of its files; nothing of it is ever unpacked by name.

Rules: a tar archive whose names are relative, without `..`, and come once; files, folders, and
links that stay inside it (`docker save` links a layer that two images share). What is cut off, has
too many members, or is something else is refused before anything is read from it.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError
from harness.execution.image.pieces import read_pieces
from harness.store.durable import state_error

MAX_MEMBERS = 20_000
MAX_SMALL = 4 * 1024 * 1024
"""Most bytes of a manifest, an index or a config."""

NOT_AN_IMAGE = "make it with `docker save` or as an OCI layout in one tar archive"


class SavedArchive:
    """The files of an archive.

    Args:
        path: an uncompressed tar archive that nobody else writes.
        what: names it, for messages.

    Raises:
        InputError: it breaks one of the rules.
        StateError: it can't be read.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        self._path = path
        self._files: dict[str, tarfile.TarInfo] = {}
        try:
            with tarfile.open(path, "r:") as archive:
                links = self._take(archive)
        except tarfile.TarError as error:
            raise InputError(
                f"{what}: is not a whole tar archive ({error})", hint=NOT_AN_IMAGE
            ) from error
        except OSError as error:
            raise state_error(f"read {what}", error) from error
        for name, target in links.items():
            if target in self._files:
                self._files[name] = self._files[target]

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""
        return name in self._files

    def small(self, name: str) -> bytes:
        """Return a small file whole.

        Raises:
            InputError: it is not there, or larger than `MAX_SMALL`.
            StateError: it can't be read.
        """
        member = self._member(name)
        if member.size > MAX_SMALL:
            raise InputError(
                f"{self.what}: {name!r:.100}: expected at most {MAX_SMALL} bytes, got {member.size}"
            )
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's bytes.

        Raises:
            InputError: it is not there.
            StateError: it can't be read.
        """
        member = self._member(name)
        try:
            with self._path.open("rb") as stream:
                stream.seek(member.offset_data)
                yield from read_pieces(stream, member.size)
        except OSError as error:
            raise state_error(f"read {self.what}", error) from error

    def _member(self, name: str) -> tarfile.TarInfo:
        if name not in self._files:
            raise InputError(
                f"{self.what}: names the file {name!r:.100}, which is not in it", hint=NOT_AN_IMAGE
            )
        return self._files[name]

    def _take(self, archive: tarfile.TarFile) -> dict[str, str]:
        """Take every file; return the links, name to target."""
        links: dict[str, str] = {}
        seen: set[str] = set()
        for number, member in enumerate(archive):
            name = self._inside(member.name)
            if number >= MAX_MEMBERS or (name in seen and not member.isdir()):
                raise InputError(
                    f"{self.what}: expected at most {MAX_MEMBERS} names, each once, got more",
                    hint=NOT_AN_IMAGE,
                )
            seen.add(name)
            if member.isreg() and not member.issparse():
                self._files[name] = member
            elif member.issym():
                target = posixpath.join(posixpath.dirname(name), member.linkname)
                links[name] = self._inside(posixpath.normpath(target))
            elif member.islnk():
                links[name] = self._inside(member.linkname)
            elif not member.isdir():
                raise InputError(f"{self.what}: {name!r:.100} is no file, folder or link")
        return links

    def _inside(self, name: str) -> str:
        clean = name.removeprefix("./").rstrip("/")
        if name.startswith("/") or ".." in clean.split("/"):
            raise InputError(
                f"{self.what}: expected names inside it, got {name!r:.100}",
                hint="do not trust who made this archive",
            )
        return clean
