"""The ledger, for reading: every answer is verified against the chain, the checkpoint and the keys.

Takes no lock. What another process does between two looks (cutting off a torn tail, changing the
key) can look like damage for a moment, so a ledger that seems broken gets a second look.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LedgerBrokenError
from harness.ledger.chain import Head
from harness.ledger.folder import LedgerFolder
from harness.ledger.key_change import require_last_root, size_of_last
from harness.ledger.note import VerifierKey
from harness.ledger.report import LedgerReport, report_of, roots_of
from harness.ledger.view import LedgerKeys, View, open_view
from harness.model.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedLines:
    """The lines that a checkpoint covers.

    Attributes:
        note: the checkpoint's bytes.
        key: the key in force.
        head: after the last of the lines; its length is theirs in bytes.
        entries: the entries.
    """

    note: bytes
    key: VerifierKey
    head: Head
    entries: tuple[Entry, ...]


class LedgerReader:
    """One ledger, for reading.

    Args:
        folder: `ledger/` in the state folder; it exists.
        keys: only checkpoints of theirs are accepted.
    """

    def __init__(self, folder: Path, keys: LedgerKeys) -> None:
        self._folder = LedgerFolder(folder)
        self._keys = keys

    def entries(self) -> list[Entry]:
        """Return every entry, verified against the chain and the checkpoint.

        Raises:
            LedgerBrokenError: names the first bad line.
            StateError: a file can't be read.
        """
        try:
            return self._read_entries()
        except LedgerBrokenError:
            return self._read_entries()

    def verify(self, *, watch: Collection[int] = ()) -> LedgerReport:
        """Check every line and the checkpoint, in memory that does not grow with the ledger.

        Args:
            watch: numbers of lines whose Merkle root the report should name.

        Raises:
            LedgerBrokenError: names the first bad line.
            StateError: a file can't be read.
        """
        try:
            return self._read_report(watch)
        except LedgerBrokenError:
            return self._read_report(watch)  # as in entries()

    def signed(self) -> SignedLines | None:
        """Return the lines that the checkpoint covers, verified; None before the first append.

        Raises:
            LedgerBrokenError: names the first bad line.
            StateError: a file can't be read.
        """
        try:
            return self._read_signed()
        except LedgerBrokenError:
            return self._read_signed()  # as in entries()

    def checkpoint(self) -> str:
        """Return the signed note, its signature checked; empty before the first append.

        Raises:
            LedgerBrokenError: it is not a checkpoint of this host.
            StateError: it can't be read.
        """
        with self._view() as view:
            return (view.note or b"").decode()

    def _read_entries(self) -> list[Entry]:
        with self._view() as view:
            walk = view.walk()
            entries = list(walk)
            view.require_era(walk.changes)
            return entries

    def _read_signed(self) -> SignedLines | None:
        with self._view() as view:
            if view.note is None or view.checkpoint is None:
                return None
            size = view.checkpoint.size
            walk = view.walk(watch=(size,))
            entries = list(walk)[:size]
            view.require_era(walk.changes)
            changes = [change for change in walk.changes if change.seq < size]
            key = changes[-1].new if changes else view.key
            if key is None:
                raise RuntimeError("a checkpoint was opened without a key")
            head = walk.heads[size]
            return SignedLines(note=view.note, key=key, head=head, entries=tuple(entries))

    def _read_report(self, watch: Collection[int]) -> LedgerReport:
        with self._view() as view:
            walk = view.walk(watch=watch)
            report = report_of(
                walk,
                covered=view.checkpoint.size if view.checkpoint else 0,
                note=view.note,
                key=view.key,
            )
            view.require_era(walk.changes)
            lost = [change for change in walk.changes if change.last]
            if lost:
                again = view.walk(watch={size_of_last(change) for change in lost})
                for _ in again:
                    pass
                for change in lost:
                    require_last_root(change, roots_of(again))
            return report

    def _view(self, *, lost: bool = False) -> AbstractContextManager[View]:
        return open_view(self._folder, self._keys, lost=lost)
