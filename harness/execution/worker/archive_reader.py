"""A tar archive read as it comes: headers and bytes, and nothing is ever unpacked.

Rules:
    * Only what an engine's archive of a folder holds is accepted: ustar and pax headers, files,
      folders, symlinks, hard links, FIFOs and devices. Sparse files, global headers, binary
      numbers and every other extension are refused: each has fooled a reader somewhere.
    * Names are bytes, relative, without empty or dot parts, and begin with the one folder asked
      for; each stands in a folder that came before it, and comes once.
    * Memory is bounded: one piece of the stream, one header, and the set of names.
Sources: POSIX pax; field-tested tar faults (cpython#135034, moby#52948).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.errors import ContainmentError, EngineUnreachableError, SandboxUnavailableError
from harness.execution.worker.archive_writer import BLOCK
from harness.model.relpath import show

MAX_EXTENDED = 1 << 16
"""Most bytes of an extended header; a path has 4,096 at most, and so has a link's target."""

PIECE = 1 << 20

_CHARACTERS = (b"BINARY", b"ISO-IR 10646 2000 UTF-8")
"""The two character sets of pax; names are bytes here, so that both mean the same."""

_KINDS = {
    b"0": "file",
    b"\0": "file",
    b"1": "hard-link",
    b"2": "symlink",
    b"3": "character-device",
    b"4": "block-device",
    b"5": "folder",
    b"6": "fifo",
}


class Member(NamedTuple):
    """One entry.

    Attributes:
        path: below the folder asked for; empty for that folder itself.
        kind: file, folder, symlink, hard-link, fifo, character-device or block-device.
        mode: permission bits and setuid, setgid and sticky.
        size: bytes of content; 0 for all but files.
        target: of a symlink as it is, of a hard link as a path below the folder.
    """

    path: bytes
    kind: str
    mode: int
    size: int
    target: bytes


class ArchiveReader:
    """Reads one archive.

    Args:
        pieces: the stream.
        root: the folder asked for, one name.
    """

    def __init__(self, pieces: Iterator[bytes], root: bytes) -> None:
        self._pieces = pieces
        self._root = root
        self._buffer = b""
        self._at = 0
        self._left = self._padding = 0
        self._folders: set[bytes] = set()
        self._seen: set[bytes] = set()

    def members(self) -> Iterator[Member]:
        """Yield the entries; what was not read of a content is skipped.

        Raises:
            ContainmentError: a name leads elsewhere or comes twice.
            SandboxUnavailableError: the bytes are no such archive.
            EngineUnreachableError: the archive ends before its end.
        """
        while (member := self._next()) is not None:
            self._check(member)
            yield member
            self._skip()

    def content(self) -> Iterator[bytes]:
        """Yield the content of the entry that `members` gave last.

        Raises:
            EngineUnreachableError: the archive ends before its end.
        """
        while self._left:
            data = self._some(min(self._left, PIECE))
            self._left -= len(data)
            yield data

    def has(self, path: bytes) -> bool:
        """Tell whether an entry of this path has come."""
        return path in self._seen

    def _next(self) -> Member | None:
        self._skip()
        header = self._exactly(BLOCK)
        extended: dict[bytes, bytes] = {}
        if header[156:157] == b"x":
            extended = self._extended(header)
            header = self._exactly(BLOCK)
        elif not header.strip(b"\0"):
            return None
        _check_sum(header)
        kind = _KINDS.get(header[156:157])
        if kind is None:
            raise _malformed(f"an entry of type {header[156:157]!r}")
        size = _number(extended, b"size", header[124:136]) if kind == "file" else 0
        self._left, self._padding = size, -size % BLOCK
        target = extended.get(b"linkpath", _text(header[157:257]))
        return Member(
            path=self._below(extended.get(b"path") or _name(header)),
            kind=kind,
            mode=_octal(header[100:108]) & 0o7777,
            size=size,
            target=self._below(target) if kind == "hard-link" else target,
        )

    def _extended(self, header: bytes) -> dict[bytes, bytes]:
        _check_sum(header)
        size = _octal(header[124:136])
        if size > MAX_EXTENDED:
            raise _malformed(f"an extended header of {size} bytes")
        data = self._exactly(size)
        self._exactly(-size % BLOCK)
        found: dict[bytes, bytes] = {}
        while data:
            length, space, _ = data.partition(b" ")
            end = int(length) if length.isdigit() else 0
            key, equals, value = data[len(length) + 1 : end - 1].partition(b"=")
            if not (space and equals) or end > len(data) or data[end - 1 : end] != b"\n":
                raise _malformed("a broken extended header")
            is_odd = key == b"hdrcharset" and value not in _CHARACTERS
            if is_odd or key.startswith(b"GNU.") or b"\0" in value:
                raise _malformed("an extension that no engine writes")
            found[key] = value
            data = data[end:]
        return found

    def _below(self, name: bytes) -> bytes:
        """Return a name's path below the root."""
        parts = name.removesuffix(b"/").split(b"/")
        if parts[0] != self._root or any(part in (b"", b".", b"..") for part in parts):
            raise ContainmentError(f"workspace: expected paths inside it, got {show(name)}")
        return b"/".join(parts[1:])

    def _check(self, member: Member) -> None:
        parent = member.path.rpartition(b"/")[0]
        is_top = not member.path
        if member.path in self._seen or (not is_top and parent not in self._folders):
            raise ContainmentError(
                f"workspace: {show(member.path)}: comes twice, or before the folder it is in"
            )
        if is_top and member.kind != "folder":
            raise ContainmentError(f"workspace: expected a folder, got a {member.kind}")
        self._seen.add(member.path)
        if member.kind == "folder":
            self._folders.add(member.path)

    def _skip(self) -> None:
        for _ in self.content():
            pass
        self._exactly(self._padding)
        self._padding = 0

    def _exactly(self, count: int) -> bytes:
        """Return so many bytes, not more than a header's."""
        data = self._buffer[self._at : self._at + count]
        self._at += len(data)
        while len(data) < count:
            data += self._some(count - len(data))
        return data

    def _some(self, most: int) -> bytes:
        """Return at least one byte and at most so many."""
        while self._at >= len(self._buffer):
            piece = next(self._pieces, None)
            if piece is None:
                raise EngineUnreachableError("engine: the archive of the workspace was cut")
            self._buffer, self._at = piece, 0
        data = self._buffer[self._at : self._at + most]
        self._at += len(data)
        return data


def _check_sum(header: bytes) -> None:
    expected = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if header[257:262] != b"ustar" or _octal(header[148:156]) != expected:
        raise _malformed("a broken header")


def _name(header: bytes) -> bytes:
    prefix = _text(header[345:500])
    return (prefix + b"/" if prefix else b"") + _text(header[:100])


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _octal(field: bytes) -> int:
    text = field.strip(b" \0")
    if text.strip(b"01234567"):
        raise _malformed("a number that is not octal")
    return int(text or b"0", 8)


def _number(extended: dict[bytes, bytes], key: bytes, field: bytes) -> int:
    text = extended.get(key)
    if text is None:
        return _octal(field)
    if not text.isdigit() or len(text) > len(str(1 << 63)):
        raise _malformed("a size that is no number")
    return int(text)


def _malformed(what: str) -> SandboxUnavailableError:
    return SandboxUnavailableError(
        f"engine: its archive of the workspace holds {what}",
        hint="the engine, or what lies between, does not speak plain tar",
    )
