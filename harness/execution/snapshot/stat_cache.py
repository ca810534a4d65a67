"""What was seen at the last scan, so that an unchanged file is not read and not judged again.

Rules:
    * One row per folder. An entry is trusted while type, mode, inode, size, mtime and ctime are the
      same; user space can't set the ctime, so a content can't be changed behind it.
    * What was written within two seconds of the scan is kept without its facts: a later write
      could have left the same times (git's racy entries; FAT counts in steps of two seconds).
    * Decisions are kept with the digest of the ignore rules they were made by.
    * Everything here is derived. A damaged file costs one full scan and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import StateError
from harness.execution.snapshot.facts import Facts, unpack_facts
from harness.execution.snapshot.row import OUT, Row, Seen
from harness.store.sqlite import open_derived, remove_derived

RACY_NS = 2_000_000_000
SELECTIONS_KEPT = 8

_VERSION = 2
_SCHEMA = """
    CREATE TABLE folders (
        scope TEXT, path BLOB, own BLOB, rules TEXT, names BLOB, facts BLOB, details BLOB,
        walked BLOB, files INTEGER, file_bytes INTEGER, digest TEXT, size INTEGER, rest TEXT,
        checksum INTEGER, PRIMARY KEY (scope, path)
    );
    CREATE TABLE scopes (scope TEXT PRIMARY KEY, used INTEGER) WITHOUT ROWID
"""
_COLUMNS = "path, own, rules, names, facts, details, walked, files, file_bytes, digest, size, rest"

Rows = dict[bytes, Row]
"""Rows by the path of their folder; the root's is empty."""

_Columns = tuple[bytes, bytes, str, bytes, bytes, bytes, bytes, int, int, str, int, str]


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
    query = f"SELECT checksum, {_COLUMNS} FROM folders WHERE scope = ?"  # noqa: S608 - a constant
    try:
        with open_derived(path, schema=_SCHEMA, version=_VERSION) as database:
            return {item[1]: _decode(*item) for item in database.execute(query, [scope])}
    except (StateError, ValueError, TypeError, struct.error):
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
        racy_from: what has an mtime or ctime from here on (ns) is kept without its facts.

    Raises:
        StateError: the disk is full.
    """
    with open_derived(path, schema=_SCHEMA, version=_VERSION) as database:
        database.executemany(
            "DELETE FROM folders WHERE scope = ? AND path = ?", [(scope, item) for item in gone]
        )
        marks = ", ".join("?" * 14)
        database.executemany(
            f"INSERT OR REPLACE INTO folders (scope, checksum, {_COLUMNS}) VALUES ({marks})",  # noqa: S608 - constants
            [(scope, *_encode(folder, row, racy_from)) for folder, row in changed.items()],
        )
        _keep_recent(database, scope)


def _keep_recent(database: sqlite3.Connection, scope: str) -> None:
    database.execute(
        "INSERT OR REPLACE INTO scopes SELECT ?, 1 + coalesce(max(used), 0) FROM scopes", [scope]
    )
    old = "SELECT scope FROM scopes ORDER BY used DESC LIMIT -1 OFFSET ?"
    database.execute(f"DELETE FROM folders WHERE scope IN ({old})", [SELECTIONS_KEPT])  # noqa: S608 - a constant
    database.execute(f"DELETE FROM scopes WHERE scope IN ({old})", [SELECTIONS_KEPT])  # noqa: S608 - a constant


def _encode(folder: bytes, row: Row, racy_from: int) -> tuple[object, ...]:
    row = _without_racy(row, racy_from)
    rest = ""
    if row.ignore or row.secrets:
        ignore = row.ignore and [row.ignore.verdict, *row.ignore.facts, *row.ignore[2:]]
        rest = json.dumps([ignore, list(row.secrets.items())])
    columns: _Columns = (
        folder,
        row.own,
        row.rules,
        row.names,
        row.facts,
        row.details,
        struct.pack(f"<{len(row.walked)}I", *row.walked),
        row.files,
        row.file_bytes,
        row.digest,
        row.size,
        rest,
    )
    return (_checksum(columns), *columns)


def _without_racy(row: Row, racy_from: int) -> Row:
    """Return a row without what a later write could have left unchanged."""

    def is_racy(facts: Facts) -> bool:
        return max(facts.mtime_ns, facts.ctime_ns) >= racy_from

    if not any(map(is_racy, unpack_facts(row.own + row.facts))):
        return row
    entries = {
        name: Seen(seen.verdict, Facts(seen.facts.mode, 0, 0, 0, 0))
        if is_racy(seen.facts) and seen.verdict not in OUT
        else seen
        for name, seen in row.entries().items()
    }
    packed = Row.pack(
        entries,
        own=b"" if any(map(is_racy, unpack_facts(row.own))) else row.own,
        rules=row.rules,
        ignore=None if row.ignore and is_racy(row.ignore.facts) else row.ignore,
        digest=row.digest,
        size=row.size,
    )
    return replace(packed, files=row.files, file_bytes=row.file_bytes)


def _decode(checksum: int, *columns: Any) -> Row:
    if checksum != _checksum(columns):
        raise ValueError("a row is damaged")
    _, own, rules, names, facts, details, walked, files, file_bytes, digest, size, rest = columns
    ignore, secrets = json.loads(rest) if rest else (None, ())
    return Row(
        own=own,
        rules=rules,
        ignore=ignore and Seen(ignore[0], Facts(*ignore[1:6]), *ignore[6:]),
        names=names,
        facts=facts,
        details=details,
        walked=struct.unpack(f"<{len(walked) // 4}I", walked),
        secrets=dict(secrets),
        files=files,
        file_bytes=file_bytes,
        digest=digest,
        size=size,
    )


def _checksum(columns: tuple[Any, ...]) -> int:
    """Return a checksum of a row: SQLite keeps none, and a flipped bit must not become a digest."""
    return zlib.crc32(b"\0".join(map(_bytes_of, columns)))


def _bytes_of(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
