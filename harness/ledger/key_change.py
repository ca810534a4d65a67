"""A change of the host's key, as its entry on the ledger tells it. Pure.

Two verbs change the key, each with one `done` entry of the host (no project):

    rotate    the old key hands over: the entry holds a note signed by the old key and by the new
    renew     the old key was lost: only the new key signs, so nothing proves who made the change

The note is a checkpoint over every line before the entry with one line more, which names the new
verifier key (`next key ...`, or `lost key, next key ...`). It can't be used at any other place, and
it stays in the ledger when the next append replaces the checkpoint file. A `renew` also keeps the
last checkpoint that the lost key signed.

Rules:
    * A rotated key keeps the log's name, a renewed one begins a name of its own.
    * `old` is the key in force before; in a first `renew` it may be unknown (empty).
    * The first key's name follows from its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import InputError, LedgerBrokenError
from harness.ledger.host_key import HostKey, origin_of
from harness.ledger.merkle import Frontier
from harness.ledger.note import (
    Checkpoint,
    VerifierKey,
    cosign_note,
    note_text,
    open_checkpoint,
    open_note,
    parse_checkpoint,
    parse_vkey,
    sign_note,
)
from harness.model.entry import Entry

KeyVerb = Literal["rotate", "renew"]
KEY_VERBS: tuple[KeyVerb, ...] = ("rotate", "renew")

_MEMBERS = {"old", "new", "note", "last"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One change of key.

    Attributes:
        seq: position of its entry.
        time: RFC 3339 time of its entry.
        verb: rotate or renew.
        old: the key before; None when it is unknown.
        new: the key from here on.
        last: of a renewal: the last note that the lost key signed; else empty.
    """

    seq: int
    time: str
    verb: KeyVerb
    old: VerifierKey | None
    new: VerifierKey
    last: str


def change_body(
    verb: KeyVerb,
    tree: Frontier,
    *,
    old: VerifierKey | None,
    last: str,
    signers: Sequence[HostKey],
) -> dict[str, str]:
    """Return the body of a change's entry.

    Args:
        verb: rotate or renew.
        tree: over every line before the entry.
        old: the key before; None when it is unknown.
        last: of a renewal: the last note that the lost key signed.
        signers: who signs the change, the new key last.
    """
    new = signers[-1].verifier
    return {
        "old": old.to_text() if old else "",
        "new": new.to_text(),
        "note": sign_by_all(_note_text(verb, tree, new), signers),
        "last": last,
    }


def sign_by_all(text: str, signers: Sequence[HostKey]) -> str:
    """Return a note with the signature of each key."""
    first, *others = signers
    note = sign_note(text, first.verifier, first.sign)
    for key in others:
        note = cosign_note(note, key.verifier, key.sign)
    return note


def read_change(
    entry: Entry, tree: Frontier, before: KeyChange | None, *, is_first: bool
) -> KeyChange:
    """Read and check the entry of a change.

    Args:
        entry: a `rotate` or `renew`.
        tree: over every line before it.
        before: the change before; None when none is known.
        is_first: there is no change before it, for certain.

    Raises:
        InputError: malformed, not signed by who must sign, or it does not follow.
    """
    body = entry.body
    if body.keys() != _MEMBERS or not all(isinstance(value, str) for value in body.values()):
        raise InputError("change of key: has unknown or missing members")
    if entry.verb not in KEY_VERBS or entry.phase != "done" or entry.project:
        raise InputError("change of key: expected a done entry of the host")
    verb: KeyVerb = entry.verb
    new = parse_vkey(body["new"])
    old = parse_vkey(body["old"]) if body["old"] else None
    if before is not None and old != before.new:
        raise InputError("change of key: does not follow the key in force before it")
    if is_first and old is not None and old.name != origin_of(old.public):
        raise InputError("change of key: the first key's name is not that of its bytes")
    _require_name(verb, old, new)
    try:
        _require_signed(verb, tree, body["note"], old, new)
        if body["last"]:
            _require_last(body["last"], old)
    except LedgerBrokenError as error:
        raise InputError(f"change of key: {error.message}") from error
    return KeyChange(seq=entry.seq, time=entry.time, verb=verb, old=old, new=new, last=body["last"])


def size_of_last(change: KeyChange) -> int:
    """Return how many lines the last checkpoint of a lost key covers."""
    return parse_checkpoint(note_text(change.last.encode())).size


def require_last_root(change: KeyChange, roots: Mapping[int, bytes]) -> None:
    """Require that the last checkpoint of a lost key is about the lines before the change.

    Args:
        change: a renewal that keeps one.
        roots: Merkle roots of the ledger, by number of lines.

    Raises:
        LedgerBrokenError: it is about other lines.
    """
    last = parse_checkpoint(note_text(change.last.encode()))
    if last.size > change.seq or roots[last.size] != last.root:
        raise LedgerBrokenError(
            f"ledger line {change.seq + 1}: the last checkpoint of the lost key is about other "
            "lines than those before it"
        )


def _require_name(verb: KeyVerb, old: VerifierKey | None, new: VerifierKey) -> None:
    if verb == "renew":
        if new.name != origin_of(new.public):
            raise InputError("change of key: a renewed key's name is not that of its bytes")
    elif old is None or new.name != old.name or new.public == old.public:
        raise InputError("change of key: expected another key of the same name")


def _require_signed(
    verb: KeyVerb, tree: Frontier, note: str, old: VerifierKey | None, new: VerifierKey
) -> None:
    expected = _note_text(verb, tree, new)
    signers = [key for key in ((old, new) if verb == "rotate" else (new,)) if key is not None]
    for key in signers:
        if open_note(note.encode(), key) != expected:
            raise InputError("change of key: its note is about another place or key")


def _require_last(note: str, old: VerifierKey | None) -> None:
    if old is None:
        raise InputError("change of key: the last checkpoint of an unknown key can't be checked")
    open_checkpoint(note.encode(), old)


def _note_text(verb: KeyVerb, tree: Frontier, new: VerifierKey) -> str:
    checkpoint = Checkpoint(origin=new.name, size=tree.size, root=tree.root())
    words = "next key" if verb == "rotate" else "lost key, next key"
    return f"{checkpoint.to_text()}{words} {new.to_text()}\n"
