"""The ledger, for reading: every answer is verified against the chain, the checkpoint and the keys.

Takes no lock. What another process does between two looks (cutting off a torn tail, changing the
key) can look like damage for a moment, so a ledger that seems broken gets a second look.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path

from harness.errors import LedgerBrokenError
from harness.ledger.folder import LedgerFolder
from harness.ledger.key_change import require_last_root, size_of_last
from harness.ledger.verify import LedgerReport, report_of
from harness.ledger.view import LedgerKeys, View, open_view
from harness.model.entry import Entry


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
                    require_last_root(change, again.roots)
            return report

    def _view(self, *, lost: bool = False) -> AbstractContextManager[View]:
        return open_view(self._folder, self._keys, lost=lost)
