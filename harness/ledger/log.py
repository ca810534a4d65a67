"""The ledger: append under a lock, read without one.

Order at every append: the line is written by one write and synced, then the checkpoint over it
is signed and replaced durably, then the caller may have its effect. A process that dies in
between leaves whole lines or one torn tail; the next append keeps the first, moves the second
aside and says so in its notes.

Refuses to extend lines that do not fit the last checkpoint: what is signed next always continues
what was signed before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import LedgerBrokenError
from harness.ledger.chain import Head, clock_step, hash_text
from harness.ledger.folder import LedgerFolder
from harness.ledger.host_key import HostKey
from harness.ledger.note import Checkpoint, open_checkpoint, sign_note
from harness.ledger.verify import LedgerReport, Walk, report_of
from harness.model.clock import format_time
from harness.model.entry import Entry, EntryVerb, Phase, parse_entry
from harness.store.durable import state_error
from harness.store.failpoints import pass_failpoint
from harness.store.lock import hold_lock

WAIT_SECONDS = 60.0


class Ledger:
    """One append-only ledger.

    Args:
        folder: `ledger/` in the state folder; it exists.
        key: signs the checkpoints; the only key whose checkpoints are accepted.
        now: the clock.
    """

    def __init__(self, folder: Path, key: HostKey, *, now: Callable[[], datetime]) -> None:
        self._folder = LedgerFolder(folder)
        self._key = key
        self._now = now

    def append(
        self,
        verb: EntryVerb,
        phase: Phase,
        *,
        project: str,
        body: Mapping[str, Any],
        check: Callable[[Sequence[Entry]], None] | None = None,
    ) -> Entry:
        """Append one entry; when this returns, it is on the disk and signed.

        After a StateError the entry may be there all the same: look before giving it again.

        Args:
            verb: what is done.
            phase: intent before the effect, done after it.
            project: project id; empty for what belongs to the host.
            body: the verb's members.
            check: called under the lock with every entry there is, before anything is written;
                what it raises leaves the ledger as it was. Makes the append read all lines.

        Raises:
            InputError: the body is not canonical JSON, or the entry is longer than 65,535 bytes.
            LedgerBrokenError: the lines, the checkpoint and the key do not fit together.
            StateError: the disk is full or failing, or another append does not end.
        """
        busy = "ledger: another command is appending and does not end"
        with hold_lock(self._folder.lock, wait_seconds=WAIT_SECONDS, busy=busy):
            self._begin()
            head = self._ready_head(check)
            entry = self._entry(head, verb, phase, project, body)
            line = entry.to_bytes()
            parse_entry(line)  # what could not be read back must not be written
            self._folder.append(line + b"\n")
            after = head.after(line, entry.time)
            self._folder.write_checkpoint(self._sign(after))
            self._folder.write_head(after)
            pass_failpoint("ledger.append.done")
        return entry

    def entries(self) -> list[Entry]:
        """Return every entry, verified against the chain and the checkpoint.

        Raises:
            LedgerBrokenError: names the first bad line.
            StateError: a file can't be read.
        """
        try:
            return self._read_entries()
        except LedgerBrokenError:
            # Another process may have been cutting off a torn tail just now: look once more.
            return self._read_entries()

    def verify(self) -> LedgerReport:
        """Check every line and the checkpoint, in memory that does not grow with the ledger.

        Raises:
            LedgerBrokenError: names the first bad line.
            StateError: a file can't be read.
        """
        try:
            return self._read_report()
        except LedgerBrokenError:
            return self._read_report()  # as in entries()

    def checkpoint(self) -> str:
        """Return the signed note, its signature checked; empty before the first append.

        Raises:
            LedgerBrokenError: it is not a checkpoint of this host.
            StateError: it can't be read.
        """
        note = self._folder.read_checkpoint()
        self._open(note)
        return (note or b"").decode()

    def _read_entries(self) -> list[Entry]:
        with self._view() as (stream, note, end):
            return list(Walk(stream, self._open(note), end=end))

    def _read_report(self) -> LedgerReport:
        with self._view() as (stream, note, end):
            checkpoint = self._open(note)
            covered = checkpoint.size if checkpoint else 0
            return report_of(Walk(stream, checkpoint, end=end), covered=covered, note=note)

    def _begin(self) -> None:
        """Sign the empty ledger once, so that entries without a checkpoint are never normal."""
        with self._view() as (_, note, end):
            empty = note is None and end == 0
        if empty:
            self._folder.make_entries()
            self._folder.write_checkpoint(self._sign(Head()))

    def _ready_head(self, check: Callable[[Sequence[Entry]], None] | None) -> Head:
        """Return where to append, with a torn tail moved aside."""
        with self._view() as (stream, note, end):
            checkpoint = self._open(note)
            if check is None:
                walk = self._walk_from_frontier(stream, checkpoint, end)
            else:
                walk = Walk(stream, checkpoint, end=end)
                check(list(walk))
            if walk.tail and stream is not None:
                self._folder.move_tail_aside(stream, walk.head)
            return walk.head

    def _walk_from_frontier(
        self, stream: BinaryIO | None, checkpoint: Checkpoint | None, end: int
    ) -> Walk:
        """Read only what follows the frontier; all lines when it does not fit the checkpoint."""
        start = self._folder.read_head(stream, end) if stream is not None else None
        if start is not None and checkpoint is not None and start.tree.size <= checkpoint.size:
            walk = Walk(stream, checkpoint, end=end, start=start)
            try:
                _exhaust(walk)
            except LedgerBrokenError:
                # The frontier may be the wrong part: only all lines can tell.
                pass
            else:
                return walk
        walk = Walk(stream, checkpoint, end=end)
        _exhaust(walk)
        return walk

    def _entry(
        self, head: Head, verb: EntryVerb, phase: Phase, project: str, body: Mapping[str, Any]
    ) -> Entry:
        time = format_time(self._now())
        notes = self._folder.torn_notes(head.tree.size)
        step = clock_step(head, time)
        if step:
            notes["clockStepMs"] = step
        return Entry(
            seq=head.tree.size,
            time=time,
            prev=hash_text(head.leaf),
            verb=verb,
            phase=phase,
            project=project,
            body=body,
            notes=notes,
        )

    def _sign(self, head: Head) -> str:
        key = self._key.verifier
        checkpoint = Checkpoint(origin=key.name, size=head.tree.size, root=head.tree.root())
        return sign_note(checkpoint.to_text(), key, self._key.sign)

    def _open(self, note: bytes | None) -> Checkpoint | None:
        return None if note is None else open_checkpoint(note, self._key.verifier)

    @contextlib.contextmanager
    def _view(self) -> Iterator[tuple[BinaryIO | None, bytes | None, int]]:
        """Give the lines, the checkpoint, and a length of the lines that fits it without the lock.

        The checkpoint is read first: the lines it covers were there before it, and whole lines
        are never taken away. A ledger that begins between the two looks gets a second one.
        """
        note = self._folder.read_checkpoint()
        with self._folder.open_entries() as stream:
            end = _length(stream)
            if note is None and end:
                note = self._folder.read_checkpoint()
                end = _length(stream)
            yield stream, note, end


def _length(stream: BinaryIO | None) -> int:
    if stream is None:
        return 0
    try:
        return os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise state_error("read entries.jsonl", error) from error


def _exhaust(walk: Walk) -> None:
    for _ in walk:
        pass
