"""What an image holds, as a table of its files: layers read in order, from an archive on disk.

Knows: whiteouts (OCI Image Layer Specification) and Debian's list of packages. Nothing is unpacked.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.errors import InputError
from harness.execution.image.archive import Layer
from harness.execution.image.init_layer import OPAQUE
from harness.execution.image.pieces import Counted, PieceStream, read_pieces
from harness.model.digest import digest_of

WHITEOUT = ".wh."
DPKG_STATUS = "var/lib/dpkg/status"
DPKG_INFO = "var/lib/dpkg/info/"
_MERGED = ("bin/", "sbin/", "lib/", "lib32/", "lib64/")
"""Folders that are links into /usr in Debian; its package lists still use the old names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of an image.

    Attributes:
        files: path -> type, mode, owner, and digest or target of a link, in one word each.
        packages: Debian package -> version.
        owned: Debian package -> paths that its list names.
    """

    files: Mapping[str, str]
    packages: Mapping[str, str]
    owned: Mapping[str, frozenset[str]]


def image_contents(layers: tuple[Layer, ...], what: str) -> Contents:
    """Read the layers of an image, lowest first.

    Raises:
        InputError: a layer is no tar archive.
    """
    files: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    for layer in layers:
        for path, facts, text in _members(layer, what):
            folder, name = posixpath.split(path)
            if name == OPAQUE:
                _hide(files, f"{folder}/")
            elif name.startswith(WHITEOUT):
                gone = posixpath.join(folder, name.removeprefix(WHITEOUT))
                files.pop(gone, None)
                _hide(files, f"{gone}/")
            else:
                files[path] = facts
                if text:
                    texts[path] = text
    return Contents(
        files=files,
        packages=read_packages(texts.get(DPKG_STATUS, b"")),
        owned={
            path.removeprefix(DPKG_INFO).removesuffix(".list").partition(":")[0]: read_list(text)
            for path, text in texts.items()
            if path.endswith(".list")
        },
    )


def read_packages(status: bytes) -> dict[str, str]:
    """Return package and version of each paragraph of a dpkg status file (deb822(5))."""
    found: dict[str, str] = {}
    for paragraph in status.decode("utf-8", "replace").split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and not line.startswith(" ")
        )
        if "Package" in fields and "Version" in fields:
            found[fields["Package"]] = fields["Version"]
    return found


def read_list(text: bytes) -> frozenset[str]:
    """Return the paths of a package's list, below /usr where Debian has moved them."""
    paths = (line.lstrip("/") for line in text.decode("utf-8", "surrogateescape").splitlines())
    return frozenset(f"usr/{path}" if path.startswith(_MERGED) else path for path in paths)


def _hide(files: dict[str, str], below: str) -> None:
    for path in [path for path in files if path.startswith(below)]:
        del files[path]


def _members(layer: Layer, what: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield path, facts, and the content where it says what belongs to which package."""
    try:
        stream = io.BufferedReader(PieceStream(layer.read()))
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                path = posixpath.normpath(member.name).lstrip("/")
                content = archive.extractfile(member) if member.isreg() else None
                word, text = member.linkname, b""
                if content is not None and _tells(path):
                    text = content.read()
                    word = digest_of(text)
                elif content is not None:
                    counted = Counted(read_pieces(content))  # type: ignore[arg-type]
                    for _ in counted:
                        pass
                    word = counted.digest
                kind = member.type.decode("ascii", "replace")
                yield path, f"{kind} {member.mode:o} {member.uid}:{member.gid} {word}", text
    except tarfile.TarError as error:
        raise InputError(f"{what}: a layer is no whole tar archive") from error


def _tells(path: str) -> bool:
    return path == DPKG_STATUS or (path.startswith(DPKG_INFO) and path.endswith(".list"))
