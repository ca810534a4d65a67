"""Apply: the result, whole or not at all, by the caller's rules for owners and modes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import (
    ApprovalInvalidError,
    ApprovalMissingError,
    BaseDriftError,
    ContainmentError,
    StateError,
)
from harness.execution.apply.check import check_base
from harness.execution.apply.commit import commit, recover
from harness.execution.apply.journal import find_pending
from harness.execution.apply.stage import finish, stage
from harness.execution.apply.tree import hold_tree
from harness.model.approval import _MAKER, Approved
from harness.model.changeset import Changeset
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import TREES, File, Link, Tree, approve, changeset_between


@contextmanager
def umask(value: int) -> Iterator[None]:
    old = os.umask(value)
    try:
        yield
    finally:
        os.umask(old)


class FailingCalls:
    """Counts calls that change a file system; one of them fails."""

    NAMES = ("rename", "link", "mkdir", "unlink", "symlink", "write")

    def __init__(self, patch: pytest.MonkeyPatch, *, at: int, code: int) -> None:
        self.calls = 0
        self.failed = False
        for name in self.NAMES:
            patch.setattr(os, name, self._wrap(getattr(os, name), at, code))

    def _wrap(self, real: object, at: int, code: int) -> object:
        def call(*args: object, **named: object) -> object:
            self.calls += 1
            if self.calls == at:
                self.failed = True
                raise OSError(code, os.strerror(code))
            assert callable(real)
            return real(*args, **named)

        return call


@settings(max_examples=120, deadline=None)
@given(TREES, TREES)
def test_apply_gives_the_result_and_undo_the_base(before: Tree, after: Tree) -> None:
    with tempfile.TemporaryDirectory() as name:
        case = ApplyCase(Path(name))
        changeset = case.prepare(before, after)
        if _may_land(case, changeset):
            case.apply(changeset)
            assert case.tree() == after
            assert find_pending(case.state) is None
        if case.tree() == after and _may_land(case, changeset.reversed()):
            case.apply(changeset.reversed())
            assert case.tree() == before


def _may_land(case: ApplyCase, changeset: Changeset) -> bool:
    """Tell whether it passes the check; a link below a link, say, may not."""
    try:
        with hold_tree(case.root) as tree:
            check_base(tree, changeset, blobs=case.blobs, environment=case.environment)
    except ContainmentError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(TREES, TREES, st.integers(1, 60), st.sampled_from([errno.ENOSPC, errno.EIO, errno.EACCES]))
def test_a_failure_at_any_step_leaves_the_base(
    before: Tree, after: Tree, at: int, code: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        case = ApplyCase(Path(name))
        changeset = case.prepare(before, after)
        if not _may_land(case, changeset):
            return
        failing = FailingCalls(patch, at=at, code=code)
        raised = False
        try:
            case.apply(changeset)
        except StateError:
            raised = True
        patch.undo()
        assert failing.failed or not raised
        pending = find_pending(case.state)
        committed = pending is not None and pending.phase == "committed"
        case.recover()
        assert case.tree() == (after if committed or not raised else before)
        assert find_pending(case.state) is None


def test_every_kind_of_change_lands(case: ApplyCase) -> None:
    before: Tree = {
        b"edit": File(b"1"),
        b"gone": File(b"2"),
        b"mode": File(b"3"),
        b"f2d": File(b"4"),
        b"d2f": {b"x": {b"y": File(b"5")}},
        b"f2l": File(b"6"),
        b"l2f": Link(b"edit"),
        b"l2d": Link(b"nowhere"),
        b"d2l": {b"z": File(b"7")},
        b"kept": {b"k": File(b"8"), b"g": File(b"9")},
        b"bare": {},
    }
    after: Tree = {
        b"edit": File(b"1!"),
        b"mode": File(b"3", runs=True),
        b"f2d": {b"new": {b"deep": File(b"n")}, b"empty": {}},
        b"d2f": File(b"file"),
        b"f2l": Link(b"edit"),
        b"l2f": File(b"was link"),
        b"l2d": {b"in": File(b"i")},
        b"d2l": Link(b"kept"),
        b"kept": {b"k": File(b"8"), b"\xff": File(b"")},
        b"added": File(b"", runs=True),
    }
    changeset = case.prepare(before, after)
    case.apply(changeset)
    assert case.tree() == after
    case.apply(changeset.reversed())
    assert case.tree() == before


def test_an_empty_change_is_a_clean_no_op(case: ApplyCase) -> None:
    changeset = case.prepare({b"a": File(b"1")}, {b"a": File(b"1")})
    case.apply(changeset)
    assert case.tree() == {b"a": File(b"1")}


@pytest.mark.fault("L032")
def test_an_outside_hard_link_and_a_reader_keep_the_old_content(
    case: ApplyCase, tmp_path: Path
) -> None:
    changeset = case.prepare(
        {b"a": File(b"old"), b"m": File(b"m")}, {b"a": File(b"new"), b"m": File(b"m", runs=True)}
    )
    os.link(case.root / "a", tmp_path / "outside")
    os.link(case.root / "m", tmp_path / "outside-mode")
    mode = (tmp_path / "outside-mode").stat().st_mode
    with (case.root / "a").open("rb") as reader:
        case.apply(changeset)
        assert reader.read() == b"old"
    assert (case.root / "a").read_bytes() == b"new"
    assert (tmp_path / "outside").read_bytes() == b"old"
    assert (tmp_path / "outside-mode").stat().st_mode == mode
    assert (case.root / "a").stat().st_nlink == 1


@pytest.mark.parametrize(("mask", "plain", "runs"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_new_files_get_the_callers_umask_and_owner(
    case: ApplyCase, mask: int, plain: int, runs: int
) -> None:
    changeset = case.prepare({}, {b"d": {b"p": File(b""), b"r": File(b"", runs=True)}})
    with umask(mask):
        case.apply(changeset)
    assert (case.root / "d").stat().st_mode & 0o7777 == runs
    assert (case.root / "d" / "p").stat().st_mode & 0o7777 == plain
    assert (case.root / "d" / "r").stat().st_mode & 0o7777 == runs
    assert (case.root / "d" / "p").stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    ("old", "before", "after", "expected"),
    [
        (0o600, File(b"1"), File(b"2"), 0o600),
        (0o664, File(b"1"), File(b"2"), 0o664),
        (0o4755, File(b"1", runs=True), File(b"2", runs=True), 0o755),
        (0o600, File(b"1"), File(b"1", runs=True), 0o700),
        (0o644, File(b"1"), File(b"1", runs=True), 0o755),
        (0o755, File(b"1", runs=True), File(b"1"), 0o644),
    ],
)
def test_a_changed_file_keeps_its_permissions(
    case: ApplyCase, old: int, before: File, after: File, expected: int
) -> None:
    changeset = case.prepare({b"f": before}, {b"f": after})
    (case.root / "f").chmod(old)
    with umask(0o022):
        case.apply(changeset)
    assert (case.root / "f").stat().st_mode & 0o7777 == expected


def test_a_file_system_without_hard_links_is_served_too(
    case: ApplyCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **named: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    before: Tree = {b"a": File(b"1"), b"l": Link(b"a"), b"d": {b"x": File(b"x")}}
    after: Tree = {b"a": File(b"2"), b"l": Link(b"b"), b"d": File(b"y"), b"n": File(b"n")}
    changeset = case.prepare(before, after)
    case.apply(changeset)
    assert case.tree() == after


def test_a_rolled_back_file_is_the_very_inode_it_was(
    case: ApplyCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    changeset = case.prepare(
        {b"a": File(b"1"), b"g": File(b"g"), b"z": {}}, {b"a": File(b"2"), b"n": {b"f": File(b"")}}
    )
    (case.root / "a").chmod(0o640)
    before = {p.name: (p.lstat().st_ino, p.lstat().st_mode) for p in case.root.iterdir()}
    with hold_tree(case.root) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment={})
        journal = stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
        (case.root / "n").mkdir()  # somebody is quicker
        (case.root / "n" / "theirs").write_bytes(b"t")
        with pytest.raises(BaseDriftError, match="n: something is there by now"):
            commit(tree, journal, found=found, blobs=case.blobs)
        pending = find_pending(case.state)
        assert pending is not None
        assert pending.phase == "rolled-back"
        finish(tree, pending)
    assert (case.root / "n" / "theirs").read_bytes() == b"t"
    (case.root / "n" / "theirs").unlink()
    (case.root / "n").rmdir()
    assert before == {p.name: (p.lstat().st_ino, p.lstat().st_mode) for p in case.root.iterdir()}


def test_a_file_saved_between_check_and_commit_is_never_overwritten(case: ApplyCase) -> None:
    changeset = case.prepare(
        {b"a": File(b"1"), b"b": File(b"1")}, {b"a": File(b"2"), b"b": File(b"2")}
    )
    with hold_tree(case.root) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment={})
        journal = stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
        (case.root / "b").unlink()
        (case.root / "b").write_bytes(b"precious")
        with pytest.raises(BaseDriftError, match="b: was changed while the apply was at work"):
            commit(tree, journal, found=found, blobs=case.blobs)
    recovery = case.recover()
    assert recovery is not None
    assert not recovery.applied
    assert case.tree() == {b"a": File(b"1"), b"b": File(b"precious")}


@pytest.mark.fault("L029", "L032")
def test_a_folder_swapped_for_a_link_leads_nowhere(case: ApplyCase, tmp_path: Path) -> None:
    changeset = case.prepare({b"d": {b"f": File(b"1")}}, {b"d": {b"f": File(b"2")}})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"1")
    with hold_tree(case.root) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment={})
        journal = stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
        (case.root / "d").rename(tmp_path / "moved")
        (case.root / "d").symlink_to(outside)
        with pytest.raises(ContainmentError, match="d: expected a folder, got a symlink"):
            commit(tree, journal, found=found, blobs=case.blobs)
    assert (outside / "f").read_bytes() == b"1"
    assert (tmp_path / "moved" / "f").read_bytes() == b"1"
    recovery = case.recover()
    assert recovery is not None
    assert not recovery.applied
    assert list(outside.iterdir()) == [outside / "f"]
    assert case.tree() == {b"d": Link(os.fsencode(outside))}


def test_two_applies_on_one_tree_exclude_each_other(case: ApplyCase) -> None:
    changeset = case.prepare({}, {b"a": File(b"1")})
    with hold_tree(case.root), pytest.raises(StateError, match="another apply is at work"):
        case.apply(changeset)
    assert case.tree() == {}
    case.apply(changeset)
    assert case.tree() == {b"a": File(b"1")}


def test_nothing_is_staged_without_an_approval_of_this_very_change(case: ApplyCase) -> None:
    changeset = case.prepare({}, {b"a": File(b"1")})
    other = changeset_between({}, {b"b": File(b"1")}, case.blobs)
    with hold_tree(case.root) as tree:
        for approved, error in (
            (Approved(changeset, (), maker=_MAKER), ApprovalMissingError),
            (Approved(changeset, approve(other).approvals, maker=_MAKER), ApprovalInvalidError),
        ):
            with pytest.raises(error):
                stage(tree, approved, found={}, blobs=case.blobs, project=case.state)
    assert case.tree() == {}
    assert not case.state.exists()


def test_a_second_stage_waits_for_recovery(case: ApplyCase) -> None:
    changeset = case.prepare({}, {b"a": File(b"1")})
    with hold_tree(case.root) as tree:
        stage(tree, approve(changeset), found={}, blobs=case.blobs, project=case.state)
        with pytest.raises(RuntimeError, match="recover it first"):
            stage(tree, approve(changeset), found={}, blobs=case.blobs, project=case.state)
        journal = find_pending(case.state)
        assert journal is not None
        journal, recovery = recover(tree, journal, decided=False, blobs=case.blobs)
        assert not recovery.applied
        finish(tree, journal)
    assert case.tree() == {}
