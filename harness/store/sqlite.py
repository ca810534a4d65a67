"""The one opener of SQLite files; whatever lies in one is derived and can be made again.

Rules: WAL and `synchronous=NORMAL` (a crash loses the last writes and nothing else); a file with
another schema version, or one that is damaged, is deleted and made anew; mode 0600.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError
from harness.store.durable import state_error

BUSY_SECONDS = 10.0


@contextlib.contextmanager
def open_derived(path: Path, *, schema: str, version: int) -> Iterator[sqlite3.Connection]:
    """Open a derived database for the block and commit at its end; an error rolls back.

    Args:
        path: the file; made when missing.
        schema: statements that make its tables.
        version: kept in `user_version`; another one in the file empties it.

    Raises:
        StateError: the file can't be made, or turned out damaged during the block (it was deleted).
    """
    try:
        connection = _connect(path, schema, version)
    except sqlite3.DatabaseError:
        remove_derived(path)
        try:
            connection = _connect(path, schema, version)
        except sqlite3.Error as error:
            raise StateError(f"state folder: {path.name}: {error}") from error
    try:
        with connection:
            yield connection
    except sqlite3.DatabaseError as error:
        remove_derived(path)
        raise StateError(
            f"state folder: {path.name}: {error}",
            hint="it held nothing that can't be made again and was deleted; give the command again",
        ) from error
    finally:
        connection.close()


def remove_derived(path: Path) -> None:
    """Delete a derived database with its side files.

    Raises:
        StateError: a file can't be deleted.
    """
    try:
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise state_error(f"delete {path.name}", error) from error


def _connect(path: Path, schema: str, version: int) -> sqlite3.Connection:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise state_error(f"open {path.name}", error) from error
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found not in (0, version):
            raise sqlite3.DatabaseError(f"expected schema {version}, got {found}")
        if found == 0:
            connection.executescript(f"BEGIN; {schema}; PRAGMA user_version = {version}; COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
