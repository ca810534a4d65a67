"""One folder as a scan left it, packed: a folder that is as it was is never decoded.

Its entries are kept in two groups, each in byte order: first the files and links that enter or were
left out as secrets, whose facts are on record; then sub-folders and what else stays out.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from struct import Struct
from typing import NamedTuple, Self

from harness.execution.snapshot.facts import Facts, pack_facts, unpack_facts
from harness.execution.snapshot.selection import Verdict
from harness.execution.snapshot.survey import Recorded
from harness.model.digest import PREFIX, Digest

# Compared by number: an enum's own look-up is slow, and this is asked for every entry.
OUT = (int(Verdict.SKIP), int(Verdict.UNSEEN))

_RECORD = Struct("<BIq32s")
_NO_DIGEST = bytes(32)


class Seen(NamedTuple):
    """One entry of a folder as a scan left it.

    Attributes:
        verdict: a `Verdict`, as its number.
        facts: of a folder, and of what stays out, only the mode; the rest is 0.
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

    @property
    def is_watched(self) -> bool:
        """Tell whether this is a file or link whose facts count."""
        return not stat.S_ISDIR(self.facts.mode) and self.verdict not in OUT

    @property
    def is_entering_file(self) -> bool:
        """Tell whether this is a file of the snapshot."""
        return stat.S_ISREG(self.facts.mode) and self.verdict not in OUT and not self.secret


def mode_only(mode: int) -> Facts:
    """Return the facts of something of which only the mode counts."""
    return Facts(mode, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One folder as a scan left it.

    Attributes:
        own: packed facts of the folder itself; empty when they prove nothing about its names.
        rules: digest of the ignore rules that held in it.
        ignore: its own `.gitignore`; None when it had none.
        watched: names of the first group, joined by slashes.
        facts: their packed facts.
        others: names of the second group, joined by slashes.
        details: verdict, mode, size and digest of all entries, packed.
        walked: positions of the sub-folders that were looked into.
        secrets: why files were left out, by position.
        targets: digests of the targets of its links.
        files: number of its files that enter.
        file_bytes: their sizes, added up.
        digest: of its folder object; empty when it did not enter.
        size: of that object.
    """

    own: bytes
    rules: str
    ignore: Seen | None
    watched: bytes
    facts: bytes
    others: bytes
    details: bytes
    walked: tuple[int, ...]
    secrets: Mapping[int, str]
    targets: tuple[str, ...]
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
        """Return the row of a folder with these entries."""
        watched = [name for name in sorted(entries) if entries[name].is_watched]
        others = [name for name in sorted(entries) if not entries[name].is_watched]
        seen = [entries[name] for name in (*watched, *others)]
        entering = [item for item in seen if item.is_entering_file]
        return cls(
            own=own,
            rules=rules,
            ignore=ignore,
            watched=b"/".join(watched),
            facts=pack_facts(entries[name].facts for name in watched),
            others=b"/".join(others),
            details=b"".join(
                _RECORD.pack(item.verdict, item.facts.mode, item.size, _raw(item.digest))
                for item in seen
            ),
            walked=tuple(place for place, item in enumerate(seen) if item.is_walked),
            secrets={place: item.secret for place, item in enumerate(seen) if item.secret},
            targets=tuple(item.digest for item in seen if stat.S_ISLNK(item.facts.mode)),
            files=len(entering),
            file_bytes=sum(item.facts.size for item in entering),
            digest=digest,
            size=size,
        )

    def objects(self) -> Iterator[Digest]:
        """Yield the digests of what the store has to hold, or the folder must be looked at."""
        needed = (self.digest, self.ignore.digest if self.ignore else "", *self.targets)
        return (Digest(digest) for digest in needed if digest)

    def recorded(self, path: bytes) -> Recorded:
        """Return what a survey needs; `path` is the folder's own."""
        return Recorded(path, self.own, self.watched, self.facts)

    def names(self) -> list[bytes]:
        """Return its names by position."""
        return [name for part in (self.watched, self.others) if part for name in part.split(b"/")]

    def walked_names(self) -> list[bytes]:
        """Return the names of the sub-folders that were looked into."""
        names = self.names() if self.walked else []
        return [names[place] for place in self.walked]

    def entries(self) -> dict[bytes, Seen]:
        """Return every entry by name."""
        found = zip(
            self.names(),
            chain(unpack_facts(self.facts), repeat(None)),
            _RECORD.iter_unpack(self.details),
            map(self.secrets.get, range(len(self.details)), repeat("")),
            strict=False,
        )
        return {
            name: Seen(verdict, facts or mode_only(mode), _text(raw), size, secret)
            for name, facts, (verdict, mode, size, raw), secret in found
        }


def child_paths(path: bytes, row: Row) -> Iterator[bytes]:
    """Yield the paths of the sub-folders of a folder that were looked into."""
    above = path + b"/" if path else b""
    return (above + name for name in row.walked_names())


def _raw(digest: str) -> bytes:
    return bytes.fromhex(digest[len(PREFIX) :]) if digest else _NO_DIGEST


def _text(raw: bytes) -> str:
    return "" if raw == _NO_DIGEST else PREFIX + raw.hex()
