"""Which stored objects the ledger's entries name, directly and through what those hold. Pure.

What is found this way must be in the store for the ledger to be of use: plans with their seals and
rules, statements with their signatures, records with their logs and artifacts, diffs with every
byte that they add. Folder objects below a snapshot are not followed: they can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness.model.changeset import parse_changeset
from harness.model.digest import Digest, parse_digest
from harness.model.entry import Entry
from harness.model.plan import parse_plan
from harness.model.run_record import parse_run_record

Load = Callable[[Digest], bytes]

_NAMED = {
    "seal": ("plan",),
    "approve": ("statement", "signature"),
    "reject": ("statement", "signature"),
    "run": ("record",),
    "quarantine": ("diff", "byProducts", "record"),
    "undo": ("diff", "byProducts", "record"),
}


def named_objects(entries: Iterable[Entry], load: Load) -> Iterator[Digest]:
    """Yield the digest of every object that entries name; some come more than once.

    Args:
        entries: of the ledger.
        load: returns verified bytes by digest.

    Raises:
        InputError: an entry or an object is malformed.
        VerificationError: an object that holds others is missing or damaged.
        NewerStateError: a newer harness wrote an object.
    """
    for entry in entries:
        for member in _NAMED.get(entry.verb, ()):
            text = entry.body.get(member)
            if not text:  # an intent, or an end without a record
                continue
            digest = parse_digest(text)
            yield digest
            yield from _named_by(entry.verb, member, digest, load)


def _named_by(verb: str, member: str, digest: Digest, load: Load) -> Iterator[Digest]:
    match verb, member:
        case "seal", "plan":
            plan = parse_plan(load(digest))
            yield from (operation.seal for operation in plan.operations)
            yield from (plan.policy, plan.reviewers)
        case "run", "record":
            record = parse_run_record(load(digest))
            yield from (record.stdout.kept, record.stderr.kept)
            yield from (artifact.digest for artifact in record.artifacts)
        case (("quarantine" | "undo"), "diff"):
            for change in parse_changeset(load(digest)).changes:
                if change.after is not None and change.after.type != "folder":
                    yield change.after.digest
        case _:
            pass
