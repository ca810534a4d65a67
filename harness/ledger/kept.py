"""Holding a ledger against what somebody kept elsewhere: an earlier checkpoint, a verifier key.

Only this shows that a ledger was cut back, replaced by another one, or that its key changed without
the old key's word. Pure: the report was made from all lines, with the root at the kept size.
"""

from __future__ import annotations

from harness.errors import LedgerBrokenError
from harness.ledger.note import (
    Checkpoint,
    VerifierKey,
    note_text,
    open_checkpoint,
    parse_checkpoint,
)
from harness.ledger.report import Era, LedgerReport
from harness.model.digest import PREFIX


def read_kept(note: bytes) -> Checkpoint:
    """Return what a kept checkpoint says; `require_continues` checks who signed it.

    Raises:
        LedgerBrokenError: not a checkpoint.
    """
    return parse_checkpoint(note_text(note))


def require_continues(report: LedgerReport, note: bytes) -> Checkpoint:
    """Require that a ledger continues what a checkpoint, kept elsewhere, commits to.

    Args:
        report: of the whole ledger, made with the kept checkpoint's size watched.
        note: the kept checkpoint's bytes.

    Raises:
        LedgerBrokenError: the ledger is shorter, has another history, or the checkpoint is not
            signed by the key that was in force at its size.
    """
    kept = read_kept(note)
    if kept.size > report.size:
        raise LedgerBrokenError(
            f"ledger: expected at least the {kept.size} entries of the kept checkpoint, "
            f"got {report.size}",
            hint="it was cut back, or restored from an older backup: what came after is missing",
        )
    key = _key_at(report.eras, kept.size)
    if key is None:
        raise LedgerBrokenError(
            "kept checkpoint: the key that was in force then is lost, and no entry names it",
            hint="check its signature with the verifier key that you were given",
        )
    open_checkpoint(note, key)
    if report.roots[kept.size] != kept.root:
        raise LedgerBrokenError(
            f"ledger: expected root {PREFIX}{kept.root.hex()} over the first {kept.size} entries, "
            f"got {PREFIX}{report.roots[kept.size].hex()}",
            hint="this is another history than the one that the kept checkpoint was given for",
        )
    return kept


def require_handed_over(report: LedgerReport, key: VerifierKey) -> None:
    """Require that each change of key since this one was signed by the key before it.

    Args:
        report: of the whole ledger.
        key: the verifier key that somebody was given.

    Raises:
        LedgerBrokenError: the ledger never had this key, or a key after it was lost.
    """
    places = [number for number, era in enumerate(report.eras) if era.key == key]
    if not places:
        raise LedgerBrokenError(
            f"ledger: the key {key.name}+{key.key_id.hex()} never signed for it",
            hint="it is another host's ledger, or the key before it was lost and nobody can tell",
        )
    for era in report.eras[places[0] + 1 :]:
        if era.begun_by == "renew":
            raise LedgerBrokenError(
                f"ledger line {era.since + 1}: the key was lost; no signature of "
                f"{key.name}+{key.key_id.hex()} leads to the one in force now",
                hint="have the new verifier key confirmed by somebody you trust, then use that one",
            )


def _key_at(eras: tuple[Era, ...], size: int) -> VerifierKey | None:
    """Return the key that signs checkpoints of so many lines."""
    begun = [era for era in eras if era.since < size or era.begun_by == "first"]
    return begun[-1].key if begun else None
