"""The checks before any write: everything that is wrong is said at once, and nothing is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import BaseDriftError, ContainmentError, HarnessError
from harness.execution.apply.check import find_refusals
from harness.model.changeset import Changeset
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import File, Link, Tree, changeset_between, write_tree


def picture(root: Path) -> Mapping[str, tuple[int, int, int, int]]:
    """Return every path with what any write would change."""
    return {
        str(path): (found.st_ino, found.st_mode, found.st_mtime_ns, found.st_ctime_ns)
        for path in [root, *root.rglob("*")]
        for found in [path.lstat()]
    }


def refused(case: ApplyCase, changeset: Changeset, error: type[HarnessError]) -> dict[str, str]:
    """Apply, expect a refusal, show that nothing was written; return place and message of each."""
    before = picture(case.root)
    with pytest.raises(error) as caught:
        case.apply(changeset)
    assert picture(case.root) == before
    assert not case.state.exists()
    return {issue.where: issue.message for issue in caught.value.issues}


def test_every_drifted_path_is_named(case: ApplyCase) -> None:
    before: Tree = {
        b"content": File(b"1"),
        b"mode": File(b"1"),
        b"gone": File(b"1"),
        b"kind": File(b"1"),
        b"link": Link(b"x"),
        b"d": {b"f": File(b"1")},
        b"fine": File(b"1"),
        b"fifo": File(b"1"),
    }
    after: Tree = {name: File(b"2") for name in before if name != b"d"}
    changeset = case.prepare(before, {**after, b"d": {b"f": File(b"2")}, b"new": File(b"n")})
    (case.root / "content").write_bytes(b"edited")
    (case.root / "mode").chmod(0o755)
    (case.root / "gone").unlink()
    (case.root / "kind").unlink()
    (case.root / "kind").mkdir()
    (case.root / "link").unlink()
    (case.root / "link").symlink_to("y")
    (case.root / "d" / "f").unlink()
    (case.root / "d").rmdir()
    (case.root / "new").write_bytes(b"mine")
    (case.root / "fifo").unlink()
    os.mkfifo(case.root / "fifo")
    assert refused(case, changeset, BaseDriftError) == {
        "content": "its content was changed",
        "d/f": "expected its folder, got none",
        "fifo": "expected file, got something that is no file, link or folder",
        "gone": "expected a file, got nothing",
        "kind": "expected file, got a folder",
        "link": "its content was changed",
        "mode": "expected mode 100644, got 100755",
        "new": "expected nothing, got a file",
    }


def test_unrelated_changes_are_no_drift(case: ApplyCase) -> None:
    changeset = case.prepare(
        {b"a": File(b"1"), b"b": File(b"1")}, {b"a": File(b"2"), b"b": File(b"1")}
    )
    (case.root / "b").write_bytes(b"edited")
    (case.root / "c").write_bytes(b"new")
    case.apply(changeset)
    assert case.tree() == {b"a": File(b"2"), b"b": File(b"edited"), b"c": File(b"new")}


def test_a_folder_that_still_holds_something_is_not_removed(case: ApplyCase) -> None:
    changeset = case.prepare({b"d": {b"f": File(b"1")}}, {})
    (case.root / "d" / "__pycache__").mkdir()
    assert refused(case, changeset, BaseDriftError) == {
        "d": "expected to be empty by then, still holds __pycache__"
    }


@pytest.mark.parametrize("name", [".git", ".GIT", ".git ", "git~1", ".g\u200cit"])
@pytest.mark.parametrize("below", ["", "/hooks/pre-commit"])
def test_git_folders_are_never_written(case: ApplyCase, name: str, below: str) -> None:
    inner: Tree = {b"hooks": {b"pre-commit": File(b"#!/bin/sh", runs=True)}}
    after: Tree = {b"sub": {name.encode(): inner if below else File(b"gitdir: x")}}
    changeset = case.prepare({b"sub": {}}, after)
    found = refused(case, changeset, ContainmentError)
    assert any("is at or below a git folder" in message for message in found.values())


def test_hooks_folders_are_never_written(case: ApplyCase) -> None:
    changeset = case.prepare(
        {b"tools": {b"hooks": {}}, b"ok": File(b"1")},
        {b"tools": {b"hooks": {b"pre-commit": File(b"#!", runs=True)}}, b"ok": File(b"2")},
    )
    (case.root / ".git").mkdir()
    (case.root / ".git" / "config").write_text("[core]\n\thooksPath = tools/hooks\n")
    assert refused(case, changeset, ContainmentError) == {
        "tools/hooks/pre-commit": "is where git or its hooks lie"
    }


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../outside", b"d/../../x", b".git/config"])
def test_links_out_of_the_project_or_into_git_are_refused(case: ApplyCase, target: bytes) -> None:
    changeset = case.prepare({}, {b"l": Link(target)})
    (message,) = refused(case, changeset, ContainmentError).values()
    assert "is a symlink that points" in message
    ((path, reason),) = find_refusals(case.root, changeset, blobs=case.blobs, environment={})
    assert (path, reason) == (b"l", message)


def test_control_characters_and_our_own_names_are_refused(case: ApplyCase) -> None:
    changeset = case.prepare({}, {b"a\nb": File(b""), b".harness-apply-x": File(b"")})
    found = refused(case, changeset, ContainmentError)
    assert found["a\\x0ab"] == "has a control character in its name"
    assert "an apply keeps for itself" in found[".harness-apply-x"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({b"README": File(b"1")}, {b"README": File(b"1"), b"readme": File(b"2")}),
        ({}, {b"a": File(b"1"), b"A": File(b"2")}),
        ({b"d": {b"f": File(b"")}}, {b"d": {b"f": File(b"")}, b"D": {b"g": File(b"")}}),
        ({"\u00e9".encode(): File(b"")}, {"\u00e9".encode(): File(b""), b"e\xcc\x81": File(b"")}),
    ],
)
def test_names_that_are_one_elsewhere_are_refused(
    case: ApplyCase, before: Tree, after: Tree
) -> None:
    changeset = case.prepare(before, after)
    found = refused(case, changeset, ContainmentError)
    assert all("is the same name as" in message for message in found.values())


def test_a_name_that_collides_with_a_file_the_snapshot_left_out_is_drift(case: ApplyCase) -> None:
    changeset = case.prepare({}, {b"notes": File(b"1")})
    (case.root / "NOTES").write_bytes(b"ignored, but here")
    assert refused(case, changeset, BaseDriftError) == {
        "notes": "NOTES is there, the same name on some systems"
    }


def test_a_rename_that_only_changes_case_lands(case: ApplyCase) -> None:
    changeset = case.prepare({b"README": File(b"1")}, {b"readme": File(b"1")})
    case.apply(changeset)
    assert case.tree() == {b"readme": File(b"1")}


@pytest.mark.fault("L032")
def test_a_symlinked_parent_is_refused(case: ApplyCase, tmp_path: Path) -> None:
    changeset = changeset_between(
        {b"d": {b"f": File(b"1")}}, {b"d": {b"f": File(b"2")}}, case.blobs
    )
    outside = tmp_path / "outside"
    write_tree(outside, {b"f": File(b"1")})
    case.root.mkdir()
    (case.root / "d").symlink_to(outside)
    assert refused(case, changeset, ContainmentError) == {
        "d/f": "can't be reached: d: expected a folder, got a symlink"
    }
    assert (outside / "f").read_bytes() == b"1"


def test_a_device_in_place_of_a_file_is_never_opened(case: ApplyCase) -> None:
    changeset = case.prepare({b"f": File(b"")}, {b"f": File(b"1")})
    (case.root / "f").unlink()
    os.mknod(case.root / "f", stat.S_IFCHR | 0o600, os.makedev(0, 0))
    found = refused(case, changeset, BaseDriftError)
    assert found == {"f": "expected file, got something that is no file, link or folder"}


def test_a_root_given_by_a_link_is_resolved_once(case: ApplyCase, tmp_path: Path) -> None:
    changeset = case.prepare({b"a": File(b"1")}, {b"a": File(b"2")})
    real = case.root.rename(tmp_path / "real")
    case.root.symlink_to(real)
    case.apply(changeset)
    assert (real / "a").read_bytes() == b"2"
    assert case.root.is_symlink()
