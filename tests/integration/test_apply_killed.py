"""SIGKILL at every point of a real apply, and of the recovery after it."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.execution.apply.journal import find_pending
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import File, Link, Tree

PROJECT = Path(__file__).resolve().parents[2]

BEFORE: Tree = {
    b"edit": File(b"1"),
    b"gone": File(b"g"),
    b"d": {b"x": File(b"x")},
    b"f": File(b"f"),
}
AFTER: Tree = {
    b"edit": File(b"2"),
    b"d": Link(b"edit"),
    b"f": {b"in": File(b"i")},
    b"new": File(b"n", runs=True),
}

APPLY = """
import sys
from pathlib import Path
from harness.execution.apply.check import check_base
from harness.execution.apply.commit import commit
from harness.execution.apply.stage import finish, stage
from harness.execution.apply.tree import hold_tree
from harness.model.changeset import parse_changeset
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import approve

folder = Path(sys.argv[1])
case = ApplyCase(folder)
changeset = parse_changeset((folder / "changeset").read_bytes())
with hold_tree(case.root) as tree:
    found = check_base(tree, changeset, blobs=case.blobs, environment={})
    journal = stage(tree, approve(changeset), found=found, blobs=case.blobs, project=case.state)
    (folder / "intent").write_bytes(b"")  # stands for the ledger
    journal = commit(tree, journal, found=found, blobs=case.blobs)
    finish(tree, journal)
"""

RECOVER = """
import sys
from pathlib import Path
from tests.fakes.apply_case import ApplyCase

folder = Path(sys.argv[1])
ApplyCase(folder).recover(decided=(folder / "intent").exists())
"""


def run(code: str, folder: Path, kill_at: int) -> bool:
    """Run code in a process of its own; tell whether it lived to its end."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "HARNESS_FAILPOINT_KILL": str(kill_at)},
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in (0, -9), done.stderr.decode()
    return done.returncode == 0


def prepare(folder: Path) -> ApplyCase:
    case = ApplyCase(folder)
    changeset = case.prepare(BEFORE, AFTER)
    (folder / "changeset").write_bytes(changeset.to_bytes())
    return case


def check(folder: Path, case: ApplyCase) -> None:
    """The tree is whole: the result once it was decided, the base before; nothing is left over."""
    decided = (folder / "intent").exists()
    assert case.tree() == (AFTER if decided else BEFORE)
    assert find_pending(case.state) is None


def test_death_at_any_point_leaves_a_whole_tree(tmp_path: Path) -> None:
    seen: set[bool] = set()
    for point in itertools.count(1):
        folder = tmp_path / str(point)
        folder.mkdir()
        case = prepare(folder)
        if run(APPLY, folder, point):
            break
        case.recover(decided=(folder / "intent").exists())
        check(folder, case)
        seen.add((folder / "intent").exists())
    assert case.tree() == AFTER
    assert seen == {True, False}
    assert point > 40


@pytest.mark.parametrize("died_at", [24, 30, 36])
def test_death_during_the_recovery_too(tmp_path: Path, died_at: int) -> None:
    first = tmp_path / "first"
    first.mkdir()
    prepare(first)
    assert not run(APPLY, first, died_at)
    for point in itertools.count(1):
        folder = tmp_path / str(point)
        shutil.copytree(first, folder, symlinks=True)
        lived = run(RECOVER, folder, point)
        case = ApplyCase(folder)
        case.recover(decided=(folder / "intent").exists())
        check(folder, case)
        if lived:
            break
    assert point > 3
