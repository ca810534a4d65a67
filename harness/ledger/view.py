"""Reading the ledger's files as one verified view, with the lock or without.

The keys are read first, then the checkpoint, then the lines: what a checkpoint covers was there
before it, and whole lines are never taken away, so others may append meanwhile. A key that changes
between two of these looks gets a second one from the callers (`LedgerReader`).

Refuses a checkpoint that the key in force at its size did not sign, also when another key of the
host did: a key that was rotated away can't speak for the lines after it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from harness.errors import LedgerBrokenError
from harness.ledger.folder import LedgerFolder
from harness.ledger.host_key import HostKey
from harness.ledger.key_change import KeyChange
from harness.ledger.note import (
    Checkpoint,
    VerifierKey,
    note_text,
    open_checkpoint,
    parse_checkpoint,
)
from harness.ledger.verify import Walk
from harness.store.durable import state_error


class LedgerKeys(Protocol):
    """Whose signatures a ledger takes, and who signs for it; `KeyFolder` is the real one."""

    def known(self) -> VerifierKey | None:
        """Return the host's key in force; None when it is lost."""

    def verifiers(self) -> tuple[VerifierKey, ...]:
        """Return the keys that may have signed the checkpoint, that in force first."""

    def signer(self) -> HostKey:
        """Return the key in force with its private half."""

    def prepare(self, key: HostKey) -> None:
        """Lay down the key that will take over."""

    def pending(self) -> HostKey | None:
        """Return the key that was to take over when a process died."""

    def switch(self) -> None:
        """Make the next key the one in force."""

    def discard(self) -> None:
        """Remove the next key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The files at one moment.

    Attributes:
        stream: the lines; None when there are none.
        note: the checkpoint's bytes; None when there is none.
        end: how many bytes of the lines there are.
        checkpoint: the checkpoint, its signature checked; None when there is none.
        key: the key that it was opened with; None without a checkpoint or when it is lost.
    """

    stream: BinaryIO | None
    note: bytes | None
    end: int
    checkpoint: Checkpoint | None
    key: VerifierKey | None

    def walk(self, *, watch: Collection[int] = ()) -> Walk:
        """Return a walk over all lines, not begun yet."""
        return Walk(self.stream, self.checkpoint, end=self.end, watch=watch)

    def require_era(self, changes: list[KeyChange]) -> None:
        """Require that the key in force at the checkpoint's size signed it.

        Args:
            changes: those that a walk to the end has met.

        Raises:
            LedgerBrokenError: only a key that was not in force did.
        """
        if self.note is None or self.checkpoint is None:
            return
        met = [change for change in changes if change.seq < self.checkpoint.size]
        if met and met[-1].new != self.key:
            open_checkpoint(self.note, met[-1].new)


@contextlib.contextmanager
def open_view(folder: LedgerFolder, keys: LedgerKeys, *, lost: bool = False) -> Iterator[View]:
    """Look at the files for the block.

    Args:
        folder: the ledger folder.
        keys: whose signatures count.
        lost: no key of the host need be known: then the checkpoint's word is taken, and nothing
            but the chain stands for the lines.

    Raises:
        LedgerBrokenError: the checkpoint is malformed or not signed by a key of the host.
        StateError: a file can't be read.
    """
    known = () if lost and keys.known() is None else keys.verifiers()
    note = folder.read_checkpoint()
    with folder.open_entries() as stream:
        end = _length(stream)
        if note is None and end:  # the ledger began between the two looks
            note = folder.read_checkpoint()
            end = _length(stream)
        checkpoint, key = (None, None) if note is None else _open(note, known)
        yield View(stream=stream, note=note, end=end, checkpoint=checkpoint, key=key)


def _open(note: bytes, keys: tuple[VerifierKey, ...]) -> tuple[Checkpoint, VerifierKey | None]:
    """Open a checkpoint with the first key that signed it; unverified when none is known."""
    if not keys:
        return parse_checkpoint(note_text(note)), None
    *others, last = keys
    for key in others:
        with contextlib.suppress(LedgerBrokenError):
            return open_checkpoint(note, key), key
    return open_checkpoint(note, last), last


def _length(stream: BinaryIO | None) -> int:
    if stream is None:
        return 0
    try:
        return os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise state_error("read entries.jsonl", error) from error
