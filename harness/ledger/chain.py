"""Which line may follow which. Pure.

Rules:
    * A line is one canonical entry and its newline.
    * Its `seq` is its position, its `prev` the leaf hash of the line before.
    * Its time is not before that of the line before, unless its notes say by how much the clock
      had stepped back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from harness.errors import InputError
from harness.ledger.merkle import Frontier, leaf_hash
from harness.model.clock import parse_time
from harness.model.digest import PREFIX, Digest
from harness.model.entry import MAX_ENTRY, Entry, parse_entry

MAX_LINE = MAX_ENTRY + 1
"""Longest line in bytes, newline included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a ledger stands after some lines: all that the next line depends on.

    Attributes:
        tree: the Merkle tree over the lines.
        length: bytes of `entries.jsonl` up to here.
        leaf: leaf hash of the last line, of no bytes before the first.
        time: RFC 3339 time of the last line, empty before the first.
    """

    tree: Frontier = field(default_factory=Frontier)
    length: int = 0
    leaf: bytes = leaf_hash(b"")
    time: str = ""

    def after(self, line: bytes, time: str) -> Head:
        """Return the head after one more line, given without its newline."""
        leaf = leaf_hash(line)
        return Head(
            tree=self.tree.append(leaf), length=self.length + len(line) + 1, leaf=leaf, time=time
        )


def hash_text(value: bytes) -> Digest:
    """Spell a hash as entries do."""
    return Digest(PREFIX + value.hex())


def parse_line(line: bytes) -> Entry:
    """Read one line with its newline.

    Raises:
        InputError: too long, cut off, or not an entry.
    """
    if not line.endswith(b"\n"):
        raise InputError("is not ended by a newline" if len(line) < MAX_LINE else "is too long")
    return parse_entry(line[:-1])


def why_not_next(head: Head, entry: Entry) -> str:
    """Say why an entry can't be the next one by its position and its link; empty when it can."""
    if entry.seq != head.tree.size:
        return f"expected seq {head.tree.size}, got {entry.seq}"
    if entry.prev != hash_text(head.leaf):
        return f"expected prev {hash_text(head.leaf)}, got {entry.prev}"
    return ""


def why_not_then(head: Head, entry: Entry) -> str:
    """Say why an entry's time and its own note of a clock step disagree; empty when they do not."""
    expected, noted = clock_step(head, entry.time), entry.notes.get("clockStepMs", 0)
    return "" if noted == expected else f"expected a clock step of {expected} ms, got {noted!r:.40}"


def clock_step(head: Head, time: str) -> int:
    """Return by how many milliseconds a time lies before that of the last line; else 0."""
    # The spelling has a fixed width and one zone, so text order is time order.
    if time >= head.time:
        return 0
    return (parse_time(head.time) - parse_time(time)) // timedelta(milliseconds=1)
