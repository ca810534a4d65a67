"""Recovery: an interrupted apply is ended by looking at the tree, and never over foreign work."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import VerificationError
from harness.execution.apply import effects
from harness.execution.apply.check import check_base
from harness.execution.apply.commit import commit, recover
from harness.execution.apply.journal import Journal, find_pending
from harness.execution.apply.stage import stage
from harness.execution.apply.tree import hold_tree
from harness.model.changeset import Changeset
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import File, Link, Tree, approve

BEFORE: Tree = {
    b"a": File(b"1"),
    b"gone": File(b"g"),
    b"d": {b"x": File(b"x"), b"y": {b"z": File(b"z")}},
    b"f": File(b"f"),
    b"l": Link(b"a"),
    b"s": {b"in": File(b"i")},
    b"t": Link(b"a"),
}
AFTER: Tree = {
    b"a": File(b"2"),
    b"new": {b"er": {b"n": File(b"n")}},
    b"d": File(b"now a file"),
    b"f": {b"in": File(b"i")},
    b"l": Link(b"f"),
    b"s": Link(b"d"),
    b"t": {b"in": File(b"t")},
}


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def die_at(case: ApplyCase, changeset: Changeset, count: int) -> bool:
    """Apply until the `count`-th change to the tree, then die before or after it."""
    steps = itertools.count(1)

    def deadly(real: str) -> object:
        act = getattr(effects, real)

        def call(*args: object, **named: object) -> None:
            if next(steps) == count:
                raise Killed
            act(*args, **named)
            if next(steps) == count:
                raise Killed

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename_at", "link_at", "make_folder_at", "remove_at"):
            patch.setattr(effects, name, deadly(name))
        try:
            case.apply(changeset)
        except Killed:
            return True
    return False


def test_death_at_every_step_is_rolled_forward(tmp_path: Path) -> None:
    for count in itertools.count(1):
        case = ApplyCase(tmp_path / str(count))
        changeset = case.prepare(BEFORE, AFTER)
        if not die_at(case, changeset, count):
            break
        recovery = case.recover()
        assert recovery is not None
        assert recovery.applied
        assert recovery.foreign == ()
        assert case.tree() == AFTER
        assert case.recover() is None
    assert count > 20


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 34),
    st.sampled_from([b"a", b"gone", b"l", b"new", b"d", b"f", b"s", b"t"]),
    st.booleans(),
    st.booleans(),
)
def test_foreign_work_after_a_death_is_kept_and_the_rest_goes_back(
    count: int, path: bytes, again: bool, link: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        case = ApplyCase(Path(name))
        changeset = case.prepare(BEFORE, AFTER)
        if not die_at(case, changeset, count):
            return
        theirs = case.root / path.decode()
        if theirs.is_dir() and not theirs.is_symlink():
            shutil.rmtree(theirs)
        else:
            theirs.unlink(missing_ok=True)
        if link:
            theirs.symlink_to(case.root.parent)
        else:
            theirs.write_bytes(b"theirs")
        if again:  # a recovery that dies before it notes its end
            with hold_tree(case.root) as tree:
                journal = find_pending(case.state)
                assert journal is not None
                recover(tree, journal, decided=True, blobs=case.blobs)
                journal.write()
        recovery = case.recover()
        assert recovery is not None
        assert not recovery.applied
        assert path in recovery.foreign
        tree_now = case.tree()
        assert tree_now[path] == (Link(bytes(case.root.parent)) if link else File(b"theirs"))
        for other in BEFORE.keys() | AFTER.keys() | tree_now.keys():
            if other != path:
                assert tree_now.get(other) == BEFORE.get(other)


def start(case: ApplyCase) -> Journal:
    changeset = case.prepare(BEFORE, AFTER)
    with hold_tree(case.root) as tree:
        found = check_base(tree, changeset, blobs=case.blobs, environment={})
        return stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)


def test_an_undecided_apply_is_cleared_away(case: ApplyCase) -> None:
    start(case)
    recovery = case.recover(decided=False)
    assert recovery is not None
    assert not recovery.applied
    assert case.tree() == BEFORE


def test_a_committed_apply_is_never_taken_back(case: ApplyCase) -> None:
    journal = start(case)
    with hold_tree(case.root) as tree:
        changeset = journal.changeset(case.blobs)
        shutil.move(case.root / os_name(journal), case.root.parent / "kept")
        found = check_base(tree, changeset, blobs=case.blobs, environment={})
        shutil.move(case.root.parent / "kept", case.root / os_name(journal))
        commit(tree, journal, found=found, blobs=case.blobs)
    (case.root / "a").write_bytes(b"edited since")
    recovery = case.recover()
    assert recovery is not None
    assert recovery.applied
    assert case.tree() == {**AFTER, b"a": File(b"edited since")}


def test_a_stage_that_somebody_removed_is_made_again(case: ApplyCase) -> None:
    journal = start(case)
    shutil.rmtree(case.root / os_name(journal))
    recovery = case.recover()
    assert recovery is not None
    assert recovery.applied
    assert case.tree() == AFTER


def os_name(journal: Journal) -> str:
    return journal.stage.decode("ascii")


@pytest.mark.parametrize("data", [b"", b"{}", b'{"_type":"harness/apply-journal/v1"}'])
def test_a_damaged_journal_stops_everything(case: ApplyCase, data: bytes) -> None:
    start(case)
    (case.state / "apply" / "journal.json").write_bytes(data)
    with pytest.raises(VerificationError, match=r"apply journal"):
        find_pending(case.state)


def test_a_commit_needs_a_stage(case: ApplyCase) -> None:
    journal = start(case).advance("rolled-back")
    with hold_tree(case.root) as tree, pytest.raises(RuntimeError, match="in phase rolled-back"):
        commit(tree, journal, found={}, blobs=case.blobs)
