"""A plain tar file of regular files, written and read one member at a time.

Only one spelling is read: each header must be, byte for byte, the one that the writer makes of the
member's name and size. No link, device, folder, sparse file, long name or extended header has a
header of that form, so none of them has to be understood, let alone refused one by one.

    header (512 bytes, GNU), content, zeros to the next 512; at the end two blocks of zeros
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from harness.errors import VerificationError

BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
MAX_NAME = tarfile.LENGTH_NAME - 1

_END = bytes(2 * BLOCK)


def header_of(name: str, size: int) -> bytes:
    """Return the header of a member: mode 0600, nobody's, of no time."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    return info.tobuf(tarfile.GNU_FORMAT, "ascii", "strict")


class ArchiveWriter:
    """Writes an archive.

    Args:
        stream: takes the bytes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write one member.

        Args:
            name: ASCII, at most 99 characters.
            size: bytes that the chunks hold together.
            chunks: the content.

        Raises:
            VerificationError: the content has another size.
            OSError: as `write`.
        """
        self._stream.write(header_of(name, size))
        written = 0
        for chunk in chunks:
            written += len(chunk)
            self._stream.write(chunk)
        if written != size:
            raise VerificationError(f"{name}: expected {size} bytes, got {written}")
        self._stream.write(bytes(-size % BLOCK))

    def finish(self) -> None:
        """Write the end.

        Raises:
            OSError: as `write`.
        """
        self._stream.write(_END)


class ArchiveReader:
    """Reads an archive; the content of a member must be taken before the next one is asked for.

    Args:
        stream: gives the bytes; it need not be seekable.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = 0

    def next(self) -> tuple[str, int] | None:
        """Return name and size of the next member; None at the archive's end.

        Raises:
            VerificationError: cut off, or not a member as the writer writes it.
            OSError: as `read`.
        """
        if self._left:
            raise RuntimeError("a member's content was not taken")
        header = self._read(BLOCK)
        if header == bytes(BLOCK):
            if self._read(BLOCK) != bytes(BLOCK) or self._stream.read(1):
                raise VerificationError("backup: expected its end, got more bytes")
            return None
        try:
            found = tarfile.TarInfo.frombuf(header, "ascii", "strict")
            name, size = found.name, found.size
            is_ours = size >= 0 and header_of(name, size) == header
        except (tarfile.HeaderError, UnicodeError, ValueError, OverflowError) as error:
            raise VerificationError("backup: expected the header of a file") from error
        if not is_ours:
            raise VerificationError(
                f"backup: expected plain files only, got something else at {name!r:.100}"
            )
        self._left = size
        return name, size

    def content(self) -> Iterator[bytes]:
        """Yield the content of the member that `next` returned.

        Raises:
            VerificationError: cut off, or not filled up with zeros.
            OSError: as `read`.
        """
        padding = -self._left % BLOCK
        while self._left:
            chunk = self._read(min(CHUNK, self._left))
            self._left -= len(chunk)
            yield chunk
        if self._read(padding) != bytes(padding):
            raise VerificationError("backup: expected zeros after a file")

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise VerificationError("backup: is cut off")
        return data
