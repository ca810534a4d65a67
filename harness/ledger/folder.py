"""The files of the ledger folder, read and written whole or at known offsets.

    lock            held while appending
    entries.jsonl   the lines; only ever appended to, or cut back to its last whole entry
    checkpoint      the signed note over them
    frontier        where the last append ended; derived, deletable, checked before use
    torn/S-DIGEST   what an interrupted append left before entry S, moved aside

Refuses to follow symlinks. Knows nothing of keys, signatures or time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import InputError, StateError, VerificationError
from harness.ledger.chain import MAX_LINE, Head, hash_text, parse_line
from harness.ledger.merkle import Frontier, leaf_hash
from harness.ledger.note import MAX_NOTE
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import digest_of, short
from harness.store.durable import state_error, sync_folder, write_all, write_durably
from harness.store.failpoints import pass_failpoint

FRONTIER_KIND = "harness/frontier/v1"


@dataclass(frozen=True, slots=True)
class LedgerFolder:
    """The ledger folder and what is in it.

    Attributes:
        root: its path; it exists.
    """

    root: Path

    @property
    def lock(self) -> Path:
        """Return the lock file."""
        return self.root / "lock"

    @property
    def entries(self) -> Path:
        """Return the file of the lines."""
        return self.root / "entries.jsonl"

    def is_empty(self) -> bool:
        """Tell whether no ledger has begun here: no checkpoint and no line.

        Raises:
            StateError: a file can't be read.
        """
        with self.open_entries() as stream:
            return self.read_checkpoint() is None and (stream is None or not stream.read(1))

    def make_entries(self) -> None:
        """Make the empty file of the lines, with a durable name.

        Raises:
            StateError: the folder can't be written.
        """
        try:
            os.close(os.open(self.entries, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise state_error("make entries.jsonl", error) from error
        sync_folder(self.root)

    @contextlib.contextmanager
    def open_entries(self) -> Iterator[BinaryIO | None]:
        """Open the lines for reading; None when there are none yet.

        Raises:
            StateError: the file can't be read.
        """
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            stream = os.fdopen(os.open(self.entries, flags), "rb")
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise state_error("read entries.jsonl", error) from error
        with stream:
            yield stream

    def append(self, line: bytes) -> None:
        """Append one line by one write, and make it durable.

        A write that the disk cuts short leaves a torn tail: the next append moves it aside.

        Raises:
            StateError: the disk is full or failing; the line may be there in part or whole.
        """
        pass_failpoint("ledger.append.write")
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.entries, flags)
            try:
                written = os.write(descriptor, line)
                if written != len(line):
                    raise StateError(
                        f"ledger: expected to append {len(line)} bytes, got {written} written",
                        hint="free some disk space, then give the same command again",
                    )
                pass_failpoint("ledger.append.fsync")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise state_error("append to entries.jsonl", error) from error

    def read_checkpoint(self) -> bytes | None:
        """Return the signed note's bytes; None when there is none.

        Raises:
            StateError: it can't be read.
        """
        return _read_small(self.root / "checkpoint", MAX_NOTE + 1)

    def write_checkpoint(self, note: str) -> None:
        """Replace the signed note.

        Raises:
            StateError: the disk is full.
        """
        pass_failpoint("ledger.append.checkpoint")
        write_durably(self.root / "checkpoint", note.encode())

    def read_head(self, stream: BinaryIO, end: int) -> Head | None:
        """Return where the last append ended, as the frontier file and the last line tell.

        The caller compares its root with the signed one before relying on it.

        Args:
            stream: the lines.
            end: how many bytes of them there are.

        Returns:
            None when there is no frontier, or it doesn't fit the lines: read them all instead.

        Raises:
            StateError: a file can't be read.
        """
        data = _read_small(self.root / "frontier", MAX_LINE)
        if data is None:
            return None
        try:
            value = parse_canonical(data, FRONTIER_KIND)
            tree = Frontier(
                size=value["size"], hashes=tuple(bytes.fromhex(text) for text in value["hashes"])
            )
            line = _last_line(stream, value["length"], end)
            entry = parse_line(line)
        except (InputError, VerificationError, KeyError, TypeError, ValueError):
            return None
        except OSError as error:
            raise state_error("read entries.jsonl", error) from error
        leaf = leaf_hash(line[:-1])
        if entry.seq != tree.size - 1 or hash_text(leaf) != value["leaf"]:
            return None
        return Head(tree=tree, length=value["length"], leaf=leaf, time=entry.time)

    def write_head(self, head: Head) -> None:
        """Note where this append ended.

        Not durable and not atomic, on purpose: a stale or torn frontier is noticed and costs
        one reading of all lines, a durable one would cost two syncs at every append. A disk that
        refuses it is passed over: the entry is written and signed by now.
        """
        data = canonical_bytes(
            {
                "_type": FRONTIER_KIND,
                "size": head.tree.size,
                "length": head.length,
                "leaf": hash_text(head.leaf),
                "hashes": [value.hex() for value in head.tree.hashes],
            }
        )
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            descriptor = os.open(self.root / "frontier", flags, 0o600)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)

    def move_tail_aside(self, stream: BinaryIO, head: Head) -> None:
        """Copy what follows the last entry to `torn/`, then cut it off.

        Raises:
            StateError: the disk is full.
        """
        try:
            (self.root / "torn").mkdir(mode=0o700, exist_ok=True)
            stream.seek(head.length)
            tail = stream.read(MAX_LINE)
            name = f"{head.tree.size}-{short(digest_of(tail))}"
            write_durably(self.root / "torn" / name, tail)
            sync_folder(self.root)
            pass_failpoint("ledger.append.truncate")
            descriptor = os.open(self.entries, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.ftruncate(descriptor, head.length)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise state_error("move a torn tail aside", error) from error

    def torn_notes(self, seq: int) -> dict[str, Any]:
        """Return what the entry `seq` has to say of tails moved aside before it; mostly nothing.

        Told by file names, so a process that dies between moving and appending loses no word.

        Raises:
            StateError: a file can't be read.
        """
        try:
            tails = [path.read_bytes() for path in sorted(self.root.glob(f"torn/{seq}-*"))]
        except OSError as error:
            raise state_error("read torn", error) from error
        if not tails:
            return {}
        return {
            "tornBytes": sum(len(tail) for tail in tails),
            "tornDigests": [digest_of(tail) for tail in tails],
        }


def _last_line(stream: BinaryIO, length: int, end: int) -> bytes:
    """Return the line that ends at the offset `length`, with its newline; nothing if none does."""
    if not 0 < length <= end:
        return b""
    # One byte more than a line: the newline that ends the line before.
    start = max(0, length - MAX_LINE - 1)
    stream.seek(start)
    window = stream.read(length - start)
    return window[window[:-1].rfind(b"\n") + 1 :]


def _read_small(path: Path, limit: int) -> bytes | None:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as stream:
            return stream.read(limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
