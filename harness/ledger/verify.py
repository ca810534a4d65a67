"""Reading lines against a signed checkpoint, and naming the first one that is wrong.

Obligations, for every line that the checkpoint covers:
    1. it is one canonical entry ended by a newline;
    2. its position and its link to the line before are right;
    3. its time and its note of a clock step agree;
    4. a change of the host's key follows from the key before it, or says openly that it was lost;
    5. the Merkle root over all of them is the signed one, and none is missing.

Lines beyond the checkpoint were written by a process that died before it could sign: whole ones
are entries (the next checkpoint covers them), and what follows the last whole one is a torn tail.
A tail that is longer than one line, or more than one, is not what an interrupted append leaves,
and is refused.

Lines are read one at a time with one line of look-ahead: memory does not grow with the ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import BinaryIO

from harness.errors import InputError, LedgerBrokenError, NewerStateError
from harness.ledger.chain import (
    MAX_LINE,
    Head,
    hash_text,
    parse_line,
    why_not_next,
    why_not_then,
)
from harness.ledger.key_change import KEY_VERBS, KeyChange, read_change
from harness.ledger.merkle import leaf_hash
from harness.ledger.note import Checkpoint
from harness.model.digest import PREFIX
from harness.model.entry import Entry
from harness.store.durable import state_error

_CHANGED = "was changed or put in after it was written: the line after it does not follow it"
_ROOT = (
    "expected root {expected}, got {got}: this line was changed, or an earlier one together with "
    "every link after it"
)


class Walk:
    """One pass over the lines; iterate to the end, then look at `head` and `tail`.

    An entry is given out before the lines after it were read: only when the iteration ended
    without an error has every one of them been verified.

    Args:
        stream: the lines; None when there is no file.
        checkpoint: verified already; None when there is none, which allows no lines at all.
        end: how many bytes of the stream to read. Taken after the checkpoint was read, it lets
            others append meanwhile.
        start: where to begin. Its root is checked as soon as the checkpoint's size is reached.
        watch: numbers of lines after which the head is wanted.

    Attributes:
        head: after the last entry read.
        tail: bytes after the last entry that are not entries.
        changes: the changes of the host's key that were met.
        heads: where the ledger stood after so many lines, for those watched.
    """

    def __init__(
        self,
        stream: BinaryIO | None,
        checkpoint: Checkpoint | None,
        *,
        end: int,
        start: Head | None = None,
        watch: Collection[int] = (),
    ) -> None:
        self.head = start or Head()
        self.tail = 0
        self.changes: list[KeyChange] = []
        self.heads: dict[int, Head] = {}
        self._is_whole = self.head.tree.size == 0
        self._watch = frozenset(watch)
        self._tail_goes_on = False
        self._before: Head | None = None
        self._stream = stream
        self._checkpoint = checkpoint
        self._end = end
        self._position = self.head.length

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries.

        Raises:
            LedgerBrokenError: names the first bad line, or what else does not fit.
            NewerStateError: names a line that a newer harness wrote.
            StateError: the lines can't be read.
        """
        if self._checkpoint is None:
            if self._end:
                raise LedgerBrokenError("ledger: checkpoint is missing, but there are entries")
            return
        self._require_root(self._checkpoint)
        self._keep_head()
        yield from self._entries(self._checkpoint)
        if self.head.tree.size < self._checkpoint.size:
            raise _broken(
                self.head.tree.size + 1,
                f"is missing: the checkpoint covers {self._checkpoint.size} lines",
            )
        self.tail = self._end - self.head.length
        if self._tail_goes_on:
            raise _broken(
                self.head.tree.size + 1,
                f"expected an entry, got {self.tail} bytes that one interrupted append can't leave",
            )

    def _entries(self, checkpoint: Checkpoint) -> Iterator[Entry]:
        if self._stream is None:
            return
        line = self._read_line(self._stream)
        while line:
            following = self._read_line(self._stream)
            entry = self._check(line, following, checkpoint)
            if entry is None:
                self._tail_goes_on = bool(following)
                return
            if entry.verb in KEY_VERBS:
                self._read_change(entry)
            self._before, self.head = self.head, self.head.after(line[:-1], entry.time)
            self._require_root(checkpoint)
            self._keep_head()
            yield entry
            line = following

    def _check(self, line: bytes, following: bytes, checkpoint: Checkpoint) -> Entry | None:
        """Return the line's entry; None when a torn tail begins here."""
        covered = self.head.tree.size < checkpoint.size
        number = self.head.tree.size + 1
        try:
            entry = parse_line(line)
        except NewerStateError as error:  # not torn: a whole line, which must not be moved aside
            if covered and not self._is_confirmed(line, following, checkpoint):
                raise _broken(number, _CHANGED) from error
            raise NewerStateError(f"ledger line {number}: {error.message}") from error
        except InputError as error:
            if not covered:
                return None
            raise _broken(number, error.message) from error
        reason = why_not_next(self.head, entry)
        if reason and covered and self._blames_the_line_before(entry, line, following, checkpoint):
            raise _broken(number - 1, _CHANGED)
        reason = reason or why_not_then(self.head, entry)
        if not reason:
            return entry
        if not covered:
            return None
        raise _broken(number, reason)

    def _blames_the_line_before(
        self, entry: Entry, line: bytes, following: bytes, checkpoint: Checkpoint
    ) -> bool:
        """Tell which of two lines that contradict each other is the wrong one.

        The line before is wrong when this one is confirmed, by the line that follows or by the
        signed root, and its own place is right: it only links to another line before it, or it
        asks for the very place that the line before took.
        """
        if self._before is None:
            return False
        if entry.seq == self.head.tree.size == checkpoint.size - 1:
            claimed = bytes.fromhex(entry.prev.removeprefix(PREFIX))
            tree = self._before.tree.append(claimed).append(leaf_hash(line[:-1]))
            return tree.root() == checkpoint.root
        placed = entry.seq == self.head.tree.size or not why_not_next(self._before, entry)
        return placed and _links_to(following, line)

    def _is_confirmed(self, line: bytes, following: bytes, checkpoint: Checkpoint) -> bool:
        """Tell whether the next line or the signed root names exactly this line."""
        leaf = leaf_hash(line[:-1])
        if following:
            return hash_text(leaf).encode() in following
        tree = self.head.tree.append(leaf)
        return tree.size == checkpoint.size and tree.root() == checkpoint.root

    def _require_root(self, checkpoint: Checkpoint) -> None:
        tree = self.head.tree
        if tree.size == checkpoint.size and tree.root() != checkpoint.root:
            expected, got = hash_text(checkpoint.root), hash_text(tree.root())
            raise _broken(tree.size, _ROOT.format(expected=expected, got=got))

    def _keep_head(self) -> None:
        if self.head.tree.size in self._watch:
            self.heads[self.head.tree.size] = self.head

    def _read_change(self, entry: Entry) -> None:
        before = self.changes[-1] if self.changes else None
        is_first = self._is_whole and before is None
        try:
            change = read_change(entry, self.head.tree, before, is_first=is_first)
        except InputError as error:
            raise _broken(entry.seq + 1, error.message) from error
        self.changes.append(change)

    def _read_line(self, stream: BinaryIO) -> bytes:
        """Return the next line with its newline; cut off at the end, at most MAX_LINE bytes."""
        try:
            stream.seek(self._position)
            line = stream.readline(min(MAX_LINE, self._end - self._position))
        except OSError as error:
            raise state_error("read entries.jsonl", error) from error
        self._position += len(line)
        return line


def _links_to(following: bytes, line: bytes) -> bool:
    try:
        return parse_line(following).prev == hash_text(leaf_hash(line[:-1]))
    except InputError:
        return False


def _broken(number: int, reason: str) -> LedgerBrokenError:
    return LedgerBrokenError(f"ledger line {number}: {reason}")
