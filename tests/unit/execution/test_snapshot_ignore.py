"""The ignore rules of a snapshot answer for paths it does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import VerificationError
from harness.execution.snapshot.ignore import IgnoreRules
from harness.model.digest import digest_of
from tests.fakes.project_tree import ProjectTree


@pytest.fixture
def rules(tmp_path: Path) -> IgnoreRules:
    tree = ProjectTree(tmp_path)
    tree.write(
        {
            ".gitignore": "__pycache__/\n*.log\n!keep.log\n",
            "src/.gitignore": "/only-here\n!important.log\n",
            "src/deep/a": "1",
        }
    )
    taken = tree.take()
    # The live file says something else by now; the snapshot's counts.
    tree.write({".gitignore": ""})
    return IgnoreRules.from_tree(tree.view(taken).load, taken.digest)


@pytest.mark.parametrize(
    ("path", "is_folder", "ignored"),
    [
        (b"new.log", False, True),
        (b"keep.log", False, False),
        (b"src/new.log", False, True),
        (b"src/important.log", False, False),
        (b"src/deep/important.log", False, False),
        (b"src/only-here", False, True),
        (b"src/deep/only-here", False, False),
        (b"only-here", False, False),
        (b"a/b/__pycache__", True, True),
        (b"a/b/__pycache__", False, False),
        (b"a/b/__pycache__/x.py", False, True),
        (b"src/deep/a", False, False),
        (b"src/deep/a/below/a/file", False, False),
        (b"src/__pycache__/important.log", False, True),
    ],
)
def test_a_new_path(rules: IgnoreRules, path: bytes, is_folder: bool, ignored: bool) -> None:
    assert rules.is_ignored(path, is_folder) is ignored


def test_a_lost_object_is_an_error_and_not_a_no(tmp_path: Path) -> None:
    tree = ProjectTree(tmp_path)
    tree.write({".gitignore": "*.log\n"})
    taken = tree.take()
    tree.state.blobs.path_of(digest_of(b"*.log\n")).unlink()
    rules = IgnoreRules.from_tree(tree.state.blobs.get, taken.digest)
    with pytest.raises(VerificationError, match="is not in the store"):
        rules.is_ignored(b"a", False)


def test_a_link_called_gitignore_is_none(tmp_path: Path) -> None:
    tree = ProjectTree(tmp_path)
    tree.write({"rules": "*.log\n", "a.log": "1"})
    (tree.root / ".gitignore").symlink_to("rules")
    taken = tree.take()
    assert set(tree.paths(taken)) == {".gitignore", "rules", "a.log"}
    assert not IgnoreRules.from_tree(tree.state.blobs.get, taken.digest).is_ignored(b"b.log", False)
