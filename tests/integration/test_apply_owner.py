"""What root lands in somebody else's project is that person's, as `sudo` must not take it away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.execution.apply.check import check_base
from harness.execution.apply.stage import stage
from harness.execution.apply.tree import hold_tree
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import File, Link, Tree, approve

pytestmark = pytest.mark.root

ADA, BOB = (61234, 61235), (61236, 61237)
BEFORE: Tree = {b"mine": File(b"1"), b"bobs": File(b"1"), b"gone": File(b"1")}
AFTER: Tree = {
    b"mine": File(b"2"),
    b"bobs": File(b"2", runs=True),
    b"new": File(b"3"),
    b"folder": {b"inner": {b"deep": File(b"4")}, b"link": Link(b"deep")},
}


@pytest.fixture
def case(tmp_path: Path) -> ApplyCase:
    if os.geteuid() != 0:
        pytest.skip("giving files to others needs root")
    return ApplyCase(tmp_path)


def give_all(root: Path) -> None:
    for place in (root, *root.iterdir()):
        os.chown(place, *(BOB if place.name == "bobs" else ADA))


def owners(root: Path) -> dict[str, tuple[int, int]]:
    return {
        str(place.relative_to(root)): (place.lstat().st_uid, place.lstat().st_gid)
        for place in (root, *root.rglob("*"))
    }


def test_what_root_lands_belongs_to_the_owner_of_the_project(case: ApplyCase) -> None:
    changeset = case.prepare(BEFORE, AFTER)
    give_all(case.root)
    (case.root / "bobs").chmod(0o640)
    case.apply(changeset)
    assert case.tree() == AFTER
    assert owners(case.root) == {
        name: BOB if name == "bobs" else ADA
        for name in (
            ".",
            "mine",
            "bobs",
            "new",
            "folder",
            "folder/inner",
            "folder/inner/deep",
            "folder/link",
        )
    }
    assert (case.root / "bobs").stat().st_mode & 0o7777 == 0o750


def test_a_folder_that_a_killed_process_did_not_come_to_give_away_is_given_away(
    case: ApplyCase,
) -> None:
    changeset = case.prepare(BEFORE, AFTER)
    give_all(case.root)
    with hold_tree(case.root, wait_seconds=0) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment=case.environment)
        stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
    (case.root / "folder").mkdir()
    assert owners(case.root)["folder"] == (0, 0)
    recovery = case.recover()
    assert recovery is not None
    assert recovery.applied
    assert set(owners(case.root).values()) == {ADA, BOB}
    assert case.tree() == AFTER


def test_what_root_rolls_back_keeps_its_owner(case: ApplyCase) -> None:
    changeset = case.prepare(BEFORE, AFTER)
    give_all(case.root)
    before = owners(case.root)
    with hold_tree(case.root, wait_seconds=0) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment=case.environment)
        stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
    (case.root / "new").write_text("somebody else's by now")
    os.chown(case.root / "new", *BOB)
    recovery = case.recover()
    assert recovery is not None
    assert not recovery.applied
    assert owners(case.root) == {**before, "new": BOB}
