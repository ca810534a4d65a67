"""A derived database is opened, kept private, and made anew when it is damaged."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.store.sqlite import open_derived

SCHEMA = "CREATE TABLE t (x INTEGER)"


def put(path: Path, value: int, *, version: int = 1) -> None:
    with open_derived(path, schema=SCHEMA, version=version) as database:
        database.execute("INSERT INTO t VALUES (?)", [value])


def values(path: Path, *, version: int = 1) -> list[int]:
    with open_derived(path, schema=SCHEMA, version=version) as database:
        return [value for (value,) in database.execute("SELECT x FROM t")]


def put_and_fail(path: Path) -> None:
    with open_derived(path, schema=SCHEMA, version=1) as database:
        database.execute("INSERT INTO t VALUES (2)")
        raise KeyError


def test_what_was_put_is_there_and_private(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    put(path, 1)
    put(path, 2)
    assert values(path) == [1, 2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_takes_the_block_back(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    put(path, 1)
    with pytest.raises(KeyError):
        put_and_fail(path)
    assert values(path) == [1]


@pytest.mark.parametrize("damage", [b"not a database at all " * 50, b"SQLite format 3\0" * 300])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "d.sqlite"
    put(path, 1)
    path.write_bytes(damage)
    assert values(path) == []


def test_another_schema_version_empties_it(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    put(path, 1)
    assert values(path, version=2) == []


def test_damage_found_later_is_a_typed_error_and_deletes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    put(path, 1)
    with (
        pytest.raises(StateError, match=r"d\.sqlite: malformed"),
        open_derived(path, schema=SCHEMA, version=1),
    ):
        raise sqlite3.DatabaseError("malformed")
    assert not path.exists()


def test_a_folder_that_can_not_be_written_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="state folder: open"):
        put(tmp_path / "missing" / "d.sqlite", 1)
