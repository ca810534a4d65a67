"""Content-addressed bytes: put them in by streaming, get them out verified.

Layout: `objects/ab/cdef...` below the state folder, one file per digest, mode 0400. A name says
what the bytes are, so a file is never changed; reading checks the digest each time.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self

from harness.errors import StateError, VerificationError
from harness.model.digest import PREFIX, Digest, digest_of
from harness.store.durable import rename, state_error, sync_folder, write_all

CHUNK = 1 << 20

_NAME = re.compile(r"[0-9a-f]{62}")


class BlobStore:
    """Blobs by digest.

    Args:
        root: the folder that holds them; made when missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path_of(self, digest: Digest) -> Path:
        """Return where the blob is or would be."""
        digits = digest.removeprefix(PREFIX)
        return self.root / digits[:2] / digits[2:]

    def has(self, digest: Digest) -> bool:
        """Tell whether the blob is stored."""
        digits = digest.removeprefix(PREFIX)
        # As text: a seal asks for every folder of a tree, and a Path costs more than the answer.
        return os.path.exists(f"{self.root}/{digits[:2]}/{digits[2:]}")  # noqa: PTH110 - as said

    def listing(self) -> Iterator[tuple[Digest, int]]:
        """Yield digest and size of every stored blob, in no order; their bytes are not read.

        Raises:
            StateError: the folder can't be read.
        """
        try:
            for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
                if _NAME.fullmatch(path.name):
                    yield Digest(PREFIX + path.parent.name + path.name), path.lstat().st_size
        except OSError as error:
            raise state_error("list blobs", error) from error

    def put(self, data: bytes) -> Digest:
        """Store bytes; nothing is written when they are there already.

        Raises:
            StateError: the disk is full or the folder can't be written.
        """
        digest = digest_of(data)
        if not self.has(digest):
            with self.writer() as writer:
                writer.write(data)
                writer.commit()
        return digest

    def put_stream(self, stream: BinaryIO, *, limit: int | None = None) -> tuple[Digest, int]:
        """Store what a stream holds, in bounded memory.

        Args:
            stream: read until its end.
            limit: most bytes to accept.

        Returns:
            The digest and the number of bytes.

        Raises:
            StateError: the disk is full, or there are more bytes than the limit.
        """
        with self.writer() as writer:
            while chunk := stream.read(CHUNK):
                if limit is not None and writer.size + len(chunk) > limit:
                    raise StateError(f"blob: expected at most {limit} bytes")
                writer.write(chunk)
            return writer.commit(), writer.size

    def writer(self) -> BlobWriter:
        """Return a writer; use it in a `with` block and `commit` at its end."""
        return BlobWriter(self)

    def get(self, digest: Digest) -> bytes:
        """Return verified bytes.

        Raises:
            VerificationError: missing, or the bytes have another digest.
            StateError: the disk is failing, or something else has its place.
        """
        return b"".join(self.chunks(digest))

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """Yield the bytes in pieces; the digest is checked after the last one.

        Raises:
            VerificationError: missing, or the bytes have another digest.
            StateError: the disk is failing, or something else has its place.
        """
        seen = hashlib.sha256()
        try:
            with self.path_of(digest).open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    seen.update(chunk)
                    yield chunk
        except FileNotFoundError as error:
            raise VerificationError(f"blob {digest}: is not in the store") from error
        except OSError as error:
            raise state_error(f"read blob {digest}", error) from error
        if PREFIX + seen.hexdigest() != digest:
            raise VerificationError(f"blob {digest}: stored bytes have another digest")

    def reader(self) -> Callable[[Digest], bytes]:
        """Return `get` as a plain function, for code that only reads."""
        return self.get


class BlobWriter:
    """Writes one blob: hash while writing, fsync, rename to its digest."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._hash = hashlib.sha256()
        self._beside = store.root / "incoming" / secrets.token_hex(8)
        self._descriptor = -1
        self.size = 0

    def __enter__(self) -> Self:
        try:
            self._beside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self._beside, flags, 0o400)
        except OSError as error:
            raise state_error("write a blob", error) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._beside.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            StateError: the disk is full.
        """
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            raise state_error("write a blob", error) from error
        self._hash.update(data)
        self.size += len(data)

    def commit(self) -> Digest:
        """Make the blob durable and return its digest.

        Raises:
            StateError: the disk is full.
        """
        digest = Digest(PREFIX + self._hash.hexdigest())
        target = self._store.path_of(digest)
        try:
            if target.exists():  # it was made durable before it got this name
                return digest
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            rename(self._beside, target)
        except OSError as error:
            raise state_error("write a blob", error) from error
        sync_folder(target.parent)
        return digest
