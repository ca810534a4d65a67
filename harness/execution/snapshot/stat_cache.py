"""What was seen at the last scan, so that an unchanged file is not read and not judged again.

Rules:
    * One row per folder. An entry is trusted while type, mode, inode, size, mtime and ctime are the
      same; user space can't set the ctime, so a content can't be changed behind it.
    * What was written within two seconds of the scan is kept without its facts: a later write
      could have left the same times (git's racy entries; FAT counts in steps of two seconds).
      The same goes for a folder, of which the facts stand for its names.
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
from harness.execution.snapshot.facts import Facts, pack_facts, unpack_facts
from harness.execution.snapshot.row import Row, Seen, mode_only
from harness.store.sqlite import open_derived, remove_derived

RACY_NS = 2_000_000_000
SELECTIONS_KEPT = 8

_VERSION = 3
_SCHEMA = """
    CREATE TABLE folders (
        scope TEXT, path BLOB, own BLOB, watched BLOB, facts BLOB, others BLOB, details BLOB,
        walked BLOB, rules TEXT, digest TEXT, size INTEGER, files INTEGER, file_bytes INTEGER,
        rest TEXT, checksum INTEGER, PRIMARY KEY (scope, path)
    );
    CREATE TABLE scopes (scope TEXT PRIMARY KEY, used INTEGER) WITHOUT ROWID
"""
_BYTES = "path, own, watched, facts, others, details, walked"
_COLUMNS = f"checksum, {_BYTES}, rules, digest, size, files, file_bytes, rest"

Rows = dict[bytes, Row]
"""Rows by the path of their folder; the root's is empty."""


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
    query = f"SELECT {_COLUMNS} FROM folders WHERE scope = ?"  # noqa: S608 - a constant
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
        marks = "?" + ", ?" * len(_COLUMNS.split())
        database.executemany(
            f"INSERT OR REPLACE INTO folders (scope, {_COLUMNS}) VALUES ({marks})",  # noqa: S608 - constants
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
    if row.ignore or row.secrets or row.targets:
        ignore = row.ignore and [row.ignore.verdict, *row.ignore.facts, *row.ignore[2:]]
        rest = json.dumps([ignore, list(row.secrets.items()), row.targets])
    walked = struct.pack(f"<{len(row.walked)}I", *row.walked)
    packed = (folder, row.own, row.watched, row.facts, row.others, row.details, walked)
    plain = (row.rules, row.digest, row.size, row.files, row.file_bytes, rest)
    return (_checksum(packed, plain), *packed, *plain)


def _without_racy(row: Row, racy_from: int) -> Row:
    """Return a row without the facts that a later write could have left as they are."""

    def is_racy(facts: Facts) -> bool:
        return max(facts.mtime_ns, facts.ctime_ns) >= racy_from

    def cleared(facts: Facts) -> Facts:
        return mode_only(facts.mode) if is_racy(facts) else facts

    return replace(
        row,
        own=b"" if any(map(is_racy, unpack_facts(row.own))) else row.own,
        facts=pack_facts(map(cleared, unpack_facts(row.facts))),
        ignore=None if row.ignore and is_racy(row.ignore.facts) else row.ignore,
    )


def _decode(checksum: int, *columns: Any) -> Row:
    packed, plain = columns[:7], columns[7:]
    if checksum != _checksum(packed, plain):
        raise ValueError("a row is damaged")
    _, own, watched, facts, others, details, walked = packed
    rules, digest, size, files, file_bytes, rest = plain
    ignore, secrets, targets = json.loads(rest) if rest else (None, (), ())
    return Row(
        own=own,
        rules=rules,
        ignore=ignore and Seen(ignore[0], Facts(*ignore[1:6]), *ignore[6:]),
        watched=watched,
        facts=facts,
        others=others,
        details=details,
        walked=struct.unpack(f"<{len(walked) // 4}I", walked),
        secrets=dict(secrets),
        targets=tuple(targets),
        files=files,
        file_bytes=file_bytes,
        digest=digest,
        size=size,
    )


def _checksum(packed: tuple[Any, ...], plain: tuple[Any, ...]) -> int:
    """Return a checksum of a row: SQLite keeps none, and a flipped bit must not become a digest."""
    return zlib.crc32(b"\0".join(packed), zlib.crc32(repr(plain).encode()))
