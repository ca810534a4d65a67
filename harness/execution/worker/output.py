"""One output stream of a worker, kept in bounded memory and on bounded disk.

Rules: every byte is counted and hashed; the head and the tail are kept; a cut is marked in the
log and in the record, never silent. The head lies in the log while the run goes on, so that the
log can be followed; the tail goes round in a spool file beside it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.model.digest import PREFIX, Digest
from harness.model.limits import MIB
from harness.model.run_record import StreamRecord
from harness.store.durable import state_error, write_all

KEEP_BYTES = 4 * MIB
"""What is kept of each end of a stream unless told otherwise."""

_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedStream:
    """A finished stream.

    Attributes:
        path: the stored log: all of it, or head, mark and tail.
        record: counts and digests.
    """

    path: Path
    record: StreamRecord


class OutputCapture:
    """Takes one stream's bytes as they come.

    Args:
        path: the log to write; must not exist.
        head: most bytes to keep of the beginning.
        tail: most bytes to keep of the end.

    Raises:
        StateError: the log can't be made.
    """

    def __init__(self, path: Path, *, head: int = KEEP_BYTES, tail: int = KEEP_BYTES) -> None:
        self.path = path
        self.total = 0
        self._head, self._tail = head, tail
        self._hash = hashlib.sha256()
        self._spool_path = path.with_name(path.name + ".tail")
        self._log = self._spool = -1
        try:
            self._log = _create(path)
            self._spool = _create(self._spool_path)
        except OSError as error:
            self.close()
            raise state_error(f"make {path.name}", error) from error

    def write(self, data: bytes) -> None:
        """Take bytes.

        Raises:
            StateError: the disk is full.
        """
        self._hash.update(data)
        room = max(self._head - self.total, 0)
        beyond = max(self.total - self._head, 0)
        self.total += len(data)
        try:
            if room:
                write_all(self._log, data[:room])
            self._write_tail(memoryview(data)[room:], beyond)
        except OSError as error:
            raise state_error(f"write {self.path.name}", error) from error

    def _write_tail(self, data: memoryview, beyond: int) -> None:
        """Write round the spool; `beyond` bytes went past the head before these."""
        skip = max(len(data) - self._tail, 0)
        data, beyond = data[skip:], beyond + skip
        while data:
            offset = beyond % self._tail
            count = os.pwrite(self._spool, data[: self._tail - offset], offset)
            data, beyond = data[count:], beyond + count

    def finish(self) -> CapturedStream:
        """Put head, mark and tail together and return the stored log.

        Raises:
            StateError: the disk is full.
        """
        beyond = max(self.total - self._head, 0)
        lost = max(beyond - self._tail, 0)
        tail = beyond - lost if lost else 0
        try:
            if lost:
                write_all(self._log, b"\n[... %d bytes not kept ...]\n" % lost)
            for piece in self._spooled(beyond):
                write_all(self._log, piece)
            kept = _digest_of_file(self.path)
        except OSError as error:
            raise state_error(f"write {self.path.name}", error) from error
        finally:
            self.close()
        record = StreamRecord(
            total_bytes=self.total,
            digest=Digest(PREFIX + self._hash.hexdigest()),
            kept=kept,
            truncated=lost > 0,
            head_bytes=min(self.total, self._head) if lost else self.total,
            tail_bytes=tail,
        )
        return CapturedStream(path=self.path, record=record)

    def _spooled(self, beyond: int) -> Iterator[bytes]:
        """Yield the tail in the order it came."""
        if beyond <= self._tail:
            spans = [(0, beyond)]
        else:
            turn = beyond % self._tail if self._tail else 0
            spans = [(turn, self._tail), (0, turn)]
        for start, stop in spans:
            for offset in range(start, stop, _COPY_BYTES):
                yield os.pread(self._spool, min(_COPY_BYTES, stop - offset), offset)

    def close(self) -> None:
        """Let go of the files; the spool is removed. Does nothing the second time."""
        for descriptor in (self._log, self._spool):
            if descriptor >= 0:
                os.close(descriptor)
        if self._spool >= 0:
            self._spool_path.unlink(missing_ok=True)
        self._log = self._spool = -1


def _create(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _digest_of_file(path: Path) -> Digest:
    with path.open("rb") as stream:
        return Digest(PREFIX + hashlib.file_digest(stream, "sha256").hexdigest())
