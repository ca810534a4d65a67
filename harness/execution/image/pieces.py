"""Streams that an archive comes by: pieces as a file, and a file that is hashed as it is read."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from harness.errors import InputError
from harness.model.digest import PREFIX, Digest

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE = 1 << 20

_GZIP_WINDOW = zlib.MAX_WBITS | 16


class PieceStream(io.RawIOBase):
    """Pieces of bytes as a file object."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a buffer; 0 at the end."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        taken, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


class Counted:
    """Pieces that are hashed and counted on their way."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._hash.update(piece)
            self.size += len(piece)
            yield piece

    @property
    def digest(self) -> Digest:
        """Return the digest of what has passed."""
        return Digest(PREFIX + self._hash.hexdigest())


def read_pieces(stream: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Yield a file's bytes from where it stands: all, or so many."""
    left = size
    while left is None or left > 0:
        piece = stream.read(PIECE if left is None else min(PIECE, left))
        if not piece:
            return
        left = None if left is None else left - len(piece)
        yield piece


def unzipped(pieces: Iterator[bytes], what: str) -> Iterator[bytes]:
    """Yield what gzip packed, or the pieces themselves when they are not packed.

    Args:
        pieces: of one file, or of several gzip members in a row (RFC 1952).
        what: names it, for messages.

    Raises:
        InputError: zstd, or broken gzip.
    """
    first = next(pieces, b"")
    while first and len(first) < len(ZSTD_MAGIC) and (more := next(pieces, b"")):
        first += more
    if first.startswith(ZSTD_MAGIC):
        raise InputError(
            f"{what}: is packed with zstd", hint="save it again with gzip, or unpacked"
        )
    if not first.startswith(GZIP_MAGIC):
        yield first
        yield from pieces
        return
    yield from _gunzip(first, pieces, what)


def _gunzip(first: bytes, pieces: Iterator[bytes], what: str) -> Iterator[bytes]:
    data, unpack = first, zlib.decompressobj(_GZIP_WINDOW)
    while True:
        try:
            out = unpack.decompress(data, PIECE)  # bounded: a bomb comes out piece by piece
        except zlib.error as error:
            raise InputError(f"{what}: its gzip data is broken") from error
        yield out
        data = unpack.unconsumed_tail
        if unpack.eof:
            data = _next_member(unpack.unused_data, pieces)
            if not data:
                return
            unpack = zlib.decompressobj(_GZIP_WINDOW)
        elif not out and not data:
            data = next(pieces, b"")
            if not data:
                raise InputError(f"{what}: its gzip data is cut off")


def _next_member(data: bytes, pieces: Iterator[bytes]) -> bytes:
    """Return the begin of the next gzip member; zeros between and behind them are padding."""
    data = data.lstrip(b"\0")
    while not data and (piece := next(pieces, b"")):
        data = piece.lstrip(b"\0")
    return data
