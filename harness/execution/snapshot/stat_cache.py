"""What was seen at the last scan, so that an unchanged file is not read and not judged again.

Rules:
    * One row per folder. An entry is trusted while type, mode, inode, size, mtime and ctime are the
      same; user space can't set the ctime, so a content can't be changed behind it.
    * An entry written within two seconds of the scan is kept without its digest: a later write
      could have left the same times (git's racy entries; FAT counts in steps of two seconds).
    * Decisions are kept with the digest of the ignore rules they were made by.
    * Everything here is derived. A damaged file costs one full scan and nothing else.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import StateError
from harness.store.sqlite import open_derived, remove_derived

RACY_NS = 2_000_000_000
SELECTIONS_KEPT = 8

_VERSION = 1
_SCHEMA = """
    CREATE TABLE folders (scope TEXT, path BLOB, row TEXT, PRIMARY KEY (scope, path)) WITHOUT ROWID;
    CREATE TABLE scopes (scope TEXT PRIMARY KEY, used INTEGER) WITHOUT ROWID
"""


class Facts(NamedTuple):
    """What `lstat` says of a file: the same facts mean the same content."""

    mode: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Seen(NamedTuple):
    """One entry of a folder as the last scan left it.

    Attributes:
        verdict: a `Verdict`, kept as its number.
        facts: of a file or link; of a folder only the mode counts, the rest is 0.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One folder as the last scan left it.

    Attributes:
        rules: digest of the ignore rules that held in it.
        ignore: its own `.gitignore`; None when it had none.
        entries: by name, in byte order.
        digest: of its folder object; empty when it did not enter.
        size: of that object.
    """

    rules: str
    ignore: Seen | None
    entries: Mapping[bytes, Seen]
    digest: str
    size: int


Rows = dict[bytes, Row]
"""Rows by the path of their folder; the root's is empty."""


def facts_of(found: os.stat_result) -> Facts:
    """Return the facts of a file or link."""
    return Facts(found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def load_rows(path: Path, scope: str) -> Rows:
    """Return the rows of one scope; none when the file is missing or damaged.

    Args:
        path: the cache file.
        scope: names the folder and the patterns that the rows are about.

    Raises:
        StateError: the file can't be made or deleted.
    """
    if not path.exists():
        return {}
    try:
        with open_derived(path, schema=_SCHEMA, version=_VERSION) as database:
            found = database.execute("SELECT path, row FROM folders WHERE scope = ?", [scope])
            return {bytes(folder): _decode(text) for folder, text in found}
    except (StateError, ValueError, TypeError):
        remove_derived(path)
        return {}


def save_rows(
    path: Path, scope: str, changed: Mapping[bytes, Row], gone: Iterable[bytes], *, racy_from: int
) -> None:
    """Keep changed rows, forget those of folders that are gone.

    Args:
        path: the cache file.
        scope: names the folder and the patterns that the rows are about.
        changed: rows that differ from the loaded ones.
        gone: folders of rows to forget.
        racy_from: entries with an mtime or ctime from here on (ns) lose their digest.

    Raises:
        StateError: the disk is full.
    """
    with open_derived(path, schema=_SCHEMA, version=_VERSION) as database:
        database.executemany(
            "DELETE FROM folders WHERE scope = ? AND path = ?", [(scope, item) for item in gone]
        )
        database.executemany(
            "INSERT OR REPLACE INTO folders VALUES (?, ?, ?)",
            [(scope, folder, _encode(row, racy_from)) for folder, row in changed.items()],
        )
        _keep_recent(database, scope)


def _keep_recent(database: sqlite3.Connection, scope: str) -> None:
    database.execute(
        "INSERT OR REPLACE INTO scopes SELECT ?, 1 + coalesce(max(used), 0) FROM scopes", [scope]
    )
    old = "SELECT scope FROM scopes ORDER BY used DESC LIMIT -1 OFFSET ?"
    database.execute(f"DELETE FROM folders WHERE scope IN ({old})", [SELECTIONS_KEPT])  # noqa: S608 - a constant
    database.execute(f"DELETE FROM scopes WHERE scope IN ({old})", [SELECTIONS_KEPT])  # noqa: S608 - a constant


def _encode(row: Row, racy_from: int) -> str:
    entries = [
        [name.decode("latin-1"), *_flat(seen, racy_from)] for name, seen in row.entries.items()
    ]
    ignore = None if row.ignore is None else _flat(row.ignore, racy_from)
    return json.dumps([row.rules, ignore, entries, row.digest, row.size], separators=(",", ":"))


def _flat(seen: Seen, racy_from: int) -> list[object]:
    racy = max(seen.facts.mtime_ns, seen.facts.ctime_ns) >= racy_from
    known = ("", 0, "") if racy else (seen.digest, seen.size, seen.secret)
    return [int(seen.verdict), *seen.facts, *known]


def _decode(text: str) -> Row:
    rules, ignore, entries, digest, size = json.loads(text)
    return Row(
        rules=rules,
        ignore=None if ignore is None else _seen(ignore),
        entries={name.encode("latin-1"): _seen(flat) for name, *flat in entries},
        digest=digest,
        size=size,
    )


def _seen(flat: list[Any]) -> Seen:
    # `_make` because a scan of an unchanged tree spends a good part of its time here.
    return Seen._make((flat[0], Facts._make(flat[1:6]), *flat[6:]))
