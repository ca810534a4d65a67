"""What a full check of a ledger found, for people and for whoever compares it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.ledger.chain import hash_text
from harness.ledger.key_change import KeyChange
from harness.ledger.note import VerifierKey
from harness.ledger.verify import Walk
from harness.model.digest import Digest
from harness.model.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """The lines that one host key stands for.

    Attributes:
        key: the key; None when it was lost before any change named it.
        since: number of lines before the era.
        time: RFC 3339 time of the change that began it; empty for the first.
        begun_by: rotate, renew, or `first`.
    """

    key: VerifierKey | None
    since: int
    time: str
    begun_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """What a full check of a ledger found right.

    Attributes:
        size: number of entries, also those that no checkpoint covers yet.
        root: Merkle root over them.
        time: RFC 3339 time of the last one; empty when there is none.
        checkpoint: the signed note as it is on the disk; empty before the first append.
        eras: the host keys, oldest first; the last one signs now. None for an empty ledger.
        roots: Merkle root by number of lines, for those that were asked for and are there.
        warnings: clock steps, torn tails, lost keys, entries without a checkpoint; each names its
            line.
    """

    size: int
    root: Digest
    time: str
    checkpoint: str
    eras: tuple[Era, ...]
    roots: Mapping[int, bytes]
    warnings: tuple[str, ...]


def report_of(
    walk: Walk, *, covered: int, note: bytes | None, key: VerifierKey | None
) -> LedgerReport:
    """Walk to the end and say what was found.

    Args:
        walk: over all lines, not begun yet.
        covered: number of entries the checkpoint covers.
        note: the checkpoint's bytes.
        key: the key that the checkpoint was opened with; None without one.

    Raises:
        LedgerBrokenError: names the first bad line.
    """
    warnings: list[str] = []
    for entry in walk:
        warnings.extend(_warnings_of(entry))
    size = walk.head.tree.size
    if size > covered:
        warnings.append(
            f"lines {covered + 1} to {size}: no checkpoint covers them yet; the next append signs"
        )
    if walk.tail:
        warnings.append(
            f"line {size + 1}: {walk.tail} torn bytes; the next append moves them aside"
        )
    return LedgerReport(
        size=size,
        root=hash_text(walk.head.tree.root()),
        time=walk.head.time,
        checkpoint=(note or b"").decode(),
        eras=eras_of(walk.changes, key),
        roots=roots_of(walk),
        warnings=tuple(warnings),
    )


def roots_of(walk: Walk) -> dict[int, bytes]:
    """Return the Merkle roots that a walk was to watch for, by number of lines."""
    return {size: head.tree.root() for size, head in walk.heads.items()}


def eras_of(changes: Sequence[KeyChange], key: VerifierKey | None) -> tuple[Era, ...]:
    """Return the eras of a ledger.

    Args:
        changes: every change of key, oldest first.
        key: the key in force when there was no change; None when there is no key either.
    """
    first = changes[0].old if changes else key
    if not changes and key is None:
        return ()
    return (
        Era(key=first, since=0, time="", begun_by="first"),
        *(
            Era(key=item.new, since=item.seq, time=item.time, begun_by=item.verb)
            for item in changes
        ),
    )


def _warnings_of(entry: Entry) -> Iterator[str]:
    if "clockStepMs" in entry.notes:
        yield f"line {entry.seq + 1}: the clock had stepped back by {entry.notes['clockStepMs']} ms"
    if "tornBytes" in entry.notes:
        yield f"line {entry.seq + 1}: {entry.notes['tornBytes']} torn bytes were moved aside"
    if entry.verb == "renew":
        yield (
            f"line {entry.seq + 1}: the host key had been lost and a new one took its place; no "
            "signature connects it with the lines before"
        )
    if entry.verb == "restore":
        yield (
            f"line {entry.seq + 1}: the state was restored from a backup; what was done after that "
            "backup is not in it"
        )
