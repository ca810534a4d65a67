"""The ledger: append under a lock, read without one.

Order at every append: the line is written by one write and synced, then the checkpoint over it
is signed and replaced durably, then the caller may have its effect. A process that dies in
between leaves whole lines or one torn tail; the next append keeps the first, moves the second
aside and says so in its notes.

A change of the host's key is an append with two signatures: the next key is laid down, the entry
that names it is written, the checkpoint over it is signed by both, and then the files switch. The
next append ends what a process that died in between left.

Refuses to extend lines that do not fit the last checkpoint: what is signed next always continues
what was signed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.errors import InputError, LedgerBrokenError
from harness.ledger.chain import Head, clock_step, hash_text
from harness.ledger.host_key import HostKey, new_host_key
from harness.ledger.key_change import (
    KEY_VERBS,
    KeyChange,
    KeyVerb,
    change_body,
    read_change,
    sign_by_all,
)
from harness.ledger.note import Checkpoint, VerifierKey, keep_signature, open_checkpoint
from harness.ledger.reader import LedgerReader
from harness.ledger.verify import Walk
from harness.ledger.view import LedgerKeys, View
from harness.model.clock import format_time
from harness.model.entry import Entry, EntryVerb, Phase, parse_entry
from harness.store.failpoints import pass_failpoint
from harness.store.lock import hold_lock

WAIT_SECONDS = 60.0


class Ledger(LedgerReader):
    """One append-only ledger.

    Args:
        folder: `ledger/` in the state folder; it exists.
        keys: sign the checkpoints; only checkpoints of theirs are accepted.
        now: the clock.
    """

    def __init__(self, folder: Path, keys: LedgerKeys, *, now: Callable[[], datetime]) -> None:
        super().__init__(folder, keys)
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
            RuntimeError: the verb is one of a change of key.
        """
        if verb in KEY_VERBS:
            raise RuntimeError("a change of key is appended by change_key")
        with self._held():
            self._settle_change()
            signer = self._keys.signer()
            self._begin((signer,))
            head = self._ready_head(check)
            entry = self._entry(head, verb, phase, project, body)
            self._sign(self._write(head, entry), (signer,))
        return entry

    def change_key(self, verb: KeyVerb) -> KeyChange:
        """Give the host another key, on the ledger; when this returns, it signs.

        A change that a killed process began is ended first, and is then the result.

        Args:
            verb: rotate hands over from the key there is; renew replaces a lost one.

        Raises:
            InputError: renew, and the key is there; or rotate, and nothing was signed yet.
            LedgerBrokenError: rotate, and the key is not there; or the ledger does not fit.
            StateError: the disk is full or failing, or another append does not end.
        """
        with self._held():
            ended = self._settle_change()
            if ended is not None:
                return ended
            signers = self._old_signers(verb)
            with self._view(lost=verb == "renew") as view:
                head, changes = self._walk_all(view)
                old = changes[-1].new if changes else self._keys.known()
                last = _last_note(view, old) if verb == "renew" else ""
            new = new_host_key(name=signers[0].verifier.name if signers else "")
            signers = (*signers, new)
            body = change_body(verb, head.tree, old=old, last=last, signers=signers)
            entry = self._entry(head, verb, "done", "", body)
            before = changes[-1] if changes else None
            change = read_change(entry, head.tree, before, is_first=before is None)
            self._keys.prepare(new)
            self._begin(signers)
            self._sign(self._write(head, entry), signers)
            self._keys.switch()
        return change

    def _held(self) -> AbstractContextManager[None]:
        busy = "ledger: another command is appending and does not end"
        return hold_lock(self._folder.lock, wait_seconds=WAIT_SECONDS, busy=busy)

    # ---- under the lock ----

    def _begin(self, signers: Sequence[HostKey]) -> None:
        """Sign the empty ledger once, so that entries without a checkpoint are never normal."""
        if self._folder.is_empty():
            self._folder.make_entries()
            self._folder.write_checkpoint(_signed(Head(), signers))

    def _ready_head(self, check: Callable[[Sequence[Entry]], None] | None) -> Head:
        """Return where to append, with a torn tail moved aside."""
        with self._view() as view:
            if check is None:
                walk = self._walk_from_frontier(view)
            else:
                walk = view.walk()
                check(list(walk))
            view.require_era(walk.changes)
            self._move_tail_aside(view, walk)
            return walk.head

    def _walk_all(self, view: View) -> tuple[Head, list[KeyChange]]:
        walk = view.walk()
        _exhaust(walk)
        view.require_era(walk.changes)
        self._move_tail_aside(view, walk)
        return walk.head, walk.changes

    def _walk_from_frontier(self, view: View) -> Walk:
        """Read only what follows the frontier; all lines when it does not fit the checkpoint."""
        stream, checkpoint, end = view.stream, view.checkpoint, view.end
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
        walk = view.walk()
        _exhaust(walk)
        return walk

    def _move_tail_aside(self, view: View, walk: Walk) -> None:
        if walk.tail and view.stream is not None:
            self._folder.move_tail_aside(view.stream, walk.head)

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

    def _write(self, head: Head, entry: Entry) -> Head:
        line = entry.to_bytes()
        parse_entry(line)  # what could not be read back must not be written
        self._folder.append(line + b"\n")
        return head.after(line, entry.time)

    def _sign(self, head: Head, signers: Sequence[HostKey]) -> None:
        self._folder.write_checkpoint(_signed(head, signers))
        self._folder.write_head(head)
        pass_failpoint("ledger.append.done")

    # ---- a change of key, under the lock ----

    def _old_signers(self, verb: KeyVerb) -> tuple[HostKey, ...]:
        """Return who signs a change beside the new key.

        Raises:
            InputError: the key is there, and was called lost.
            LedgerBrokenError: it is not, and should hand over.
        """
        if verb == "rotate":
            return (self._keys.signer(),)
        try:
            key = self._keys.signer()
        except LedgerBrokenError:
            return ()
        raise InputError(
            f"host key: {key.verifier.name} is there, expected it to be lost",
            hint="`harness key rotate` replaces it, with its own signature under the change",
        )

    def _settle_change(self) -> KeyChange | None:
        """End a change of key whose process died; return it when the ledger names its key."""
        pending = self._keys.pending()
        if pending is None:
            return None
        with self._view(lost=True) as view:
            head, changes = self._walk_all(view)
        if not changes or changes[-1].new != pending.verifier:
            self._keys.discard()
            return None
        change = changes[-1]
        signers = (pending,) if change.verb == "renew" else (self._keys.signer(), pending)
        self._sign(head, signers)
        self._keys.switch()
        return change


def _signed(head: Head, signers: Sequence[HostKey]) -> str:
    """Return the checkpoint over a head; its origin is the name of the last key, which stays."""
    origin = signers[-1].verifier.name
    checkpoint = Checkpoint(origin=origin, size=head.tree.size, root=head.tree.root())
    return sign_by_all(checkpoint.to_text(), signers)


def _last_note(view: View, key: VerifierKey | None) -> str:
    """Return the checkpoint with the lost key's signature alone; empty when nobody knows the key.

    Raises:
        LedgerBrokenError: the key did not sign it.
    """
    if view.note is None or key is None:
        return ""
    open_checkpoint(view.note, key)
    return keep_signature(view.note, key)


def _exhaust(walk: Walk) -> None:
    for _ in walk:
        pass
