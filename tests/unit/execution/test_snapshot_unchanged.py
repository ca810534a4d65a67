"""What was not looked at again can't have changed; what changed is always looked at again."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.execution.snapshot import scan
from harness.execution.snapshot.facts import pack_one
from harness.execution.snapshot.stat_cache import Rows, load_rows
from harness.execution.snapshot.survey import Recorded, find_changed
from harness.store.handles import names_in
from tests.fakes.project_tree import PROJECT, ProjectTree, content_of


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        patch.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    made = ProjectTree(tmp_path)
    made.write(
        {
            ".gitignore": "*.log\n",
            "a": "1111",
            "b": "2222",
            "deep/er/c": "3333",
            "deep/er/d": "4444",
            "deep/other/e": "5555",
            "note.log": "",
        }
    )
    (made.root / "link").symlink_to("a")
    return made


def keep_times(path: Path, change: Callable[[Path], object]) -> None:
    """Change something and set its times, and its folder's, back; the ctime can't be."""
    looks = {place: place.stat() for place in (path, path.parent)}
    change(path)
    for place, look in looks.items():
        if place.exists():
            os.utime(place, ns=(look.st_atime_ns, look.st_mtime_ns))


def same_size(root: Path) -> None:
    keep_times(root / "deep/er/c", lambda path: path.write_text("9999"))


def swapped(root: Path) -> None:
    (root / "a").rename(root / "aside")
    (root / "b").rename(root / "a")
    (root / "aside").rename(root / "b")


def replaced(root: Path) -> None:
    def replace(path: Path) -> None:
        (path.parent / "aside").write_text("9999")
        (path.parent / "aside").replace(path)

    keep_times(root / "deep/er/c", replace)


def executable(root: Path) -> None:
    (root / "deep/er/c").chmod(0o755)


def other_target(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("b")


def added(root: Path) -> None:
    keep_times(root / "deep/er/c", lambda path: path.with_name("new").touch())


def removed(root: Path) -> None:
    keep_times(root / "deep/er/c", Path.unlink)


def emptied(root: Path) -> None:
    (root / "deep/other/e").unlink()


def other_folder(root: Path) -> None:
    """Put a folder with the same names, sizes and times in the place of another one."""
    shutil.copytree(root / "deep/er", root / "aside")
    (root / "aside/c").write_text("9999")
    shutil.copystat(root / "deep/er/c", root / "aside/c")
    shutil.rmtree(root / "deep/er")
    (root / "aside").rename(root / "deep/er")


def folder_to_link(root: Path) -> None:
    (root / "deep/er").rename(root / "aside")
    (root / "deep/er").symlink_to("../aside")


def file_to_folder(root: Path) -> None:
    (root / "a").unlink()
    (root / "a/in").mkdir(parents=True)


def new_rule(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nd\n")


def rule_below(root: Path) -> None:
    (root / "deep/.gitignore").write_text("d\n")


CHANGES = [
    same_size,
    swapped,
    replaced,
    executable,
    other_target,
    added,
    removed,
    emptied,
    other_folder,
    folder_to_link,
    file_to_folder,
    new_rule,
    rule_below,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_hides_is_seen_as_by_a_first_scan(
    tree: ProjectTree, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    before = tree.take()
    change(tree.root)
    after = tree.take()
    fresh = ProjectTree(tmp_path / "fresh")
    fresh.root = tree.root
    assert after == fresh.take()
    assert after.digest != before.digest
    tree.view(after).verify()


def count_listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    listed: list[int] = []

    def counting(fd: int) -> list[bytes]:
        listed.append(os.fstat(fd).st_ino)
        return names_in(fd)

    monkeypatch.setattr(scan, "names_in", counting)
    return listed


def test_only_the_folders_above_an_edit_are_read_again(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.take()
    listed = count_listed(monkeypatch)
    assert tree.take() == first
    assert listed == []
    tree.write({"deep/er/c": "edited"})
    taken = tree.take()
    assert listed == [(tree.root / part).stat().st_ino for part in ("", "deep", "deep/er")]
    assert (taken.files, taken.bytes) == (first.files, first.bytes + 2)


def test_ignored_files_come_and_go_without_a_new_look_at_others(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.take()
    listed = count_listed(monkeypatch)
    tree.write({"note.log": "longer"})
    assert tree.take() == first
    assert listed == []
    tree.write({"deep/er/new.log": "new"})
    assert tree.take() == first
    assert tree.take() == first
    assert len(listed) == 3  # once, because a name came


def test_what_was_written_just_now_is_not_on_record(tree: ProjectTree) -> None:
    tree.take(clock=time.time_ns)
    rows = _rows(tree)
    assert rows
    assert all(row.own == b"" and not any(row.facts[4:36]) for row in rows.values())
    tree.take()
    assert all(row.own for row in _rows(tree).values())


def test_a_lost_object_is_made_again(tree: ProjectTree) -> None:
    first = tree.take()
    blobs = [path for path in (tree.state.root / "objects").rglob("*") if path.is_file()]
    assert blobs
    for path in blobs:
        path.unlink()
        assert tree.take() == first
        assert path.exists()


def test_a_damaged_or_lost_row_costs_a_scan_and_nothing_else(tree: ProjectTree) -> None:
    first = tree.take()
    cache = tree.state.project(PROJECT) / "stat-cache.sqlite"
    for damage in (
        "UPDATE folders SET details = replace(details, substr(details, 20, 4), x'00000000')",
        "UPDATE folders SET facts = substr(facts, 2)",
        "UPDATE folders SET files = files + 1",
        "DELETE FROM folders WHERE path = x'646565702f6572'",
        "DELETE FROM folders WHERE path = x''",
    ):
        with sqlite3.connect(cache) as database:
            assert database.execute(damage).rowcount > 0
        database.close()
        assert tree.take() == first


def test_a_folder_that_can_not_be_read_any_more_is_named(tree: ProjectTree) -> None:
    tree.take()
    (tree.root / "deep/er/c").unlink()
    os.mkfifo(tree.root / "deep/er/c")
    with pytest.raises(InputError, match="deep/er/c: is a fifo"):
        tree.take()


def test_a_survey_never_follows_a_link_and_takes_any_trouble_for_a_change(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "in").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    (top / "link").symlink_to("../in")
    recorded = [
        Recorded(b"in", pack_one((top / "in").stat()), b"", b""),
        Recorded(b"link", pack_one((tmp_path / "in").stat()), b"", b""),
        Recorded(b"gone", b"", b"", b""),
        Recorded(b"in/gone", b"", b"", b""),
        Recorded(b"", pack_one(top.stat()), b"gone", bytes(36)),
    ]
    fd = os.open(top, os.O_RDONLY)
    try:
        assert find_changed(fd, recorded) == {b"link", b"gone", b"in/gone", b""}
    finally:
        os.close(fd)


def test_a_snapshot_that_keeps_rows_shows_the_same_files(tree: ProjectTree) -> None:
    tree.take()
    tree.write({"deep/other/e": "edited"})
    taken = tree.take()
    (layer, *_) = tree.view(taken).layers
    assert b"deep/other/e" in content_of(layer)
    assert set(tree.paths(taken)) == {
        ".gitignore",
        "a",
        "b",
        "link",
        "deep",
        "deep/er",
        "deep/er/c",
        "deep/er/d",
        "deep/other",
        "deep/other/e",
    }


def _rows(tree: ProjectTree) -> Rows:
    cache = tree.state.project(PROJECT) / "stat-cache.sqlite"
    with sqlite3.connect(cache) as database:
        ((scope,),) = database.execute("SELECT scope FROM scopes").fetchall()
    database.close()
    return load_rows(cache, scope)
