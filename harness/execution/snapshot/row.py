"""One folder as a scan left it, packed: what an unchanged folder needs is there at a glance.

Entries are decoded only when something about their folder has changed.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat
from struct import Struct
from typing import NamedTuple, Self

from harness.execution.snapshot.facts import Facts, facts_at, pack_facts, unpack_facts
from harness.execution.snapshot.selection import Verdict
from harness.model.digest import PREFIX

# Compared by number: an enum's own look-up is slow, and this is asked for every entry.
OUT = (int(Verdict.SKIP), int(Verdict.UNSEEN))

_RECORD = Struct("<Bq32s")
_NO_DIGEST = bytes(32)


class Seen(NamedTuple):
    """One entry of a folder as a scan left it.

    Attributes:
        verdict: a `Verdict`, as its number.
        facts: of a folder only the mode counts, the rest is 0.
        digest: of the content, of the link's target, or of the folder object; empty when unknown
            or when the folder did not enter.
        size: of those bytes.
        secret: why a file was left out, or empty.
    """

    verdict: int
    facts: Facts
    digest: str = ""
    size: int = 0
    secret: str = ""

    @property
    def is_walked(self) -> bool:
        """Tell whether this is a folder that is looked into."""
        return stat.S_ISDIR(self.facts.mode) and self.verdict not in OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One folder as a scan left it.

    Attributes:
        own: packed facts of the folder itself; empty when they prove nothing about its names.
        rules: digest of the ignore rules that held in it.
        ignore: its own `.gitignore`; None when it had none.
        names: its names in byte order, joined by slashes.
        facts: packed facts of its entries, in the same order.
        details: verdict, size and digest of its entries, packed, in the same order.
        walked: positions of the sub-folders that were looked into.
        secrets: why files were left out, by position.
        files: number of its files that enter.
        file_bytes: their sizes, added up.
        digest: of its folder object; empty when it did not enter.
        size: of that object.
    """

    own: bytes
    rules: str
    ignore: Seen | None
    names: bytes
    facts: bytes
    details: bytes
    walked: tuple[int, ...]
    secrets: Mapping[int, str]
    files: int
    file_bytes: int
    digest: str
    size: int

    @classmethod
    def pack(
        cls,
        entries: Mapping[bytes, Seen],
        *,
        own: bytes,
        rules: str,
        ignore: Seen | None,
        digest: str,
        size: int,
    ) -> Self:
        """Return the row of a folder with these entries, given in byte order of their names."""
        seen = tuple(entries.values())
        entering = [
            item
            for item in seen
            if stat.S_ISREG(item.facts.mode) and item.verdict not in OUT and not item.secret
        ]
        return cls(
            own=own,
            rules=rules,
            ignore=ignore,
            names=b"/".join(entries),
            facts=pack_facts(item.facts for item in seen),
            details=b"".join(
                _RECORD.pack(item.verdict, item.size, _raw(item.digest)) for item in seen
            ),
            walked=tuple(place for place, item in enumerate(seen) if item.is_walked),
            secrets={place: item.secret for place, item in enumerate(seen) if item.secret},
            files=len(entering),
            file_bytes=sum(item.facts.size for item in entering),
            digest=digest,
            size=size,
        )

    def list_names(self) -> list[bytes]:
        """Return its names, in byte order."""
        return self.names.split(b"/") if self.names else []

    def seen_at(self, position: int) -> Seen:
        """Return one entry.

        Raises:
            struct.error: there are not so many.
        """
        verdict, size, raw = _RECORD.unpack_from(self.details, position * _RECORD.size)
        facts = facts_at(self.facts, position)
        return Seen(verdict, facts, _text(raw), size, self.secrets.get(position, ""))

    def entries(self) -> dict[bytes, Seen]:
        """Return every entry by name, in byte order.

        Raises:
            struct.error: the packed bytes were cut.
        """
        found = zip(
            self.list_names(),
            unpack_facts(self.facts),
            _RECORD.iter_unpack(self.details),
            map(self.secrets.get, range(len(self.details)), repeat("")),
            strict=False,
        )
        return {
            name: Seen(verdict, facts, _text(raw), size, secret)
            for name, facts, (verdict, size, raw), secret in found
        }


def _raw(digest: str) -> bytes:
    return bytes.fromhex(digest[len(PREFIX) :]) if digest else _NO_DIGEST


def _text(raw: bytes) -> str:
    return "" if raw == _NO_DIGEST else PREFIX + raw.hex()
