"""A ledger entry: one verb, one phase, and what it is about.

The kinds are the verbs, spelled as everywhere. `intent` is appended before an effect, `done`
after it; a verb without an effect of its own has only `done`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.clock import parse_time
from harness.model.digest import Digest, parse_digest

ENTRY_KIND = "harness/entry/v1"
MAX_ENTRY = 65_535
"""Longest entry in bytes: tlog-tiles (C2SP) counts an entry's length in 16 bits."""

EntryVerb = Literal[
    "seal",
    "approve",
    "reject",
    "run",
    "quarantine",
    "apply",
    "undo",
    "build",
    "add",
    "rotate",
    "renew",
    "restore",
    "move",
]
VERBS: tuple[EntryVerb, ...] = get_args(EntryVerb)
Phase = Literal["intent", "done"]
PHASES: tuple[Phase, ...] = ("intent", "done")

_MEMBERS = {
    "_type": str,
    "seq": int,
    "time": str,
    "prev": str,
    "verb": str,
    "phase": str,
    "project": str,
    "body": dict,
    "notes": dict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger.

    Attributes:
        seq: position, from 0.
        time: RFC 3339 time of the append.
        prev: RFC 6962 leaf hash of the line before, as a digest; that of nothing for the first.
        verb: what was done.
        phase: intent or done.
        project: project id, or empty for what belongs to the host (an image build).
        body: members of the verb, all strings, integers, booleans, lists and objects.
        notes: what the log itself noticed: `clockStepMs`, `tornBytes` and `tornDigests`.
    """

    seq: int
    time: str
    prev: Digest
    verb: EntryVerb
    phase: Phase
    project: str
    body: Mapping[str, Any]
    notes: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """Return the line without its newline.

        Raises:
            InputError: longer than 65,535 bytes.
        """
        data = canonical_bytes(
            {
                "_type": ENTRY_KIND,
                "seq": self.seq,
                "time": self.time,
                "prev": self.prev,
                "verb": self.verb,
                "phase": self.phase,
                "project": self.project,
                "body": dict(self.body),
                "notes": dict(self.notes),
            }
        )
        if len(data) > MAX_ENTRY:
            raise InputError(f"ledger entry: expected at most {MAX_ENTRY} bytes, got {len(data)}")
        return data


def parse_entry(line: bytes) -> Entry:
    """Read one line without its newline.

    Raises:
        InputError: not canonical, malformed, or with unknown or missing members.
    """
    if len(line) > MAX_ENTRY:
        raise InputError(f"ledger entry: expected at most {MAX_ENTRY} bytes, got {len(line)}")
    value = parse_canonical(line, ENTRY_KIND)
    if value.keys() != _MEMBERS.keys():
        raise InputError("ledger entry: has unknown or missing members")
    for name, expected in _MEMBERS.items():
        # type(), not isinstance(): in Python true is an integer too.
        if type(value[name]) is not expected:
            raise InputError(
                f"ledger entry: expected {name} of type {expected.__name__}, "
                f"got {type(value[name]).__name__}"
            )
    if value["verb"] not in VERBS or value["phase"] not in PHASES:
        raise InputError(f"ledger entry: unknown verb {value['verb']!r:.40} or phase")
    if value["seq"] < 0:
        raise InputError(f"ledger entry: expected a seq from 0, got {value['seq']}")
    parse_time(value["time"])
    return Entry(
        seq=value["seq"],
        time=value["time"],
        prev=parse_digest(value["prev"]),
        verb=value["verb"],
        phase=value["phase"],
        project=value["project"],
        body=value["body"],
        notes=value["notes"],
    )
