"""Where git and its hooks lie, found without running git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import StateError
from harness.execution.apply.git_config import config_values, parse_config
from harness.execution.apply.protected import find_protected, is_protected
from harness.model.changeset import Change
from tests.fakes.trees import File, node_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def configure(root: Path, text: str) -> None:
    (root / ".git" / "config").write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\thooksPath = tools/hooks\n",
        "[core] hookspath=tools/hooks",
        '[CORE]\nHOOKSPATH = "tools/hooks" # a comment\n',
        "[core]\r\n hooksPath = tools\\\n/hooks\r\n",
        "[core]\nhooksPath = tools/./hooks/ ; other\n",
        '[include]\npath = more\n[core "x"]\nbare = false\n',
    ],
)
def test_the_configured_hooks_folder_is_protected(root: Path, text: str) -> None:
    configure(root, text)
    (root / ".git" / "more").write_text("[core]\nhooksPath = tools/hooks\n")
    assert b"tools/hooks" in find_protected(root, {})


def test_users_and_worktree_configurations_count(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text('[core]\nhooksPath = one\n[includeIf "x:y"]\npath = ~/inc\n')
    (home / "inc").write_text(f"[core]\nhooksPath = {root}/two\n")
    (home / ".config" / "git" / "config").write_text("[core]\nhooksPath = three\n")
    (root / ".git" / "config.worktree").write_text("[core]\nhooksPath = four\n")
    found = find_protected(root, {"HOME": str(home)})
    assert {b"one", b"two", b"three", b"four"} <= found


def test_a_git_folder_under_another_name_is_protected(root: Path) -> None:
    (root / ".git").rename(root / "store")
    (root / ".git").write_text("gitdir: store\n")
    assert b"store" in find_protected(root, {})
    (root / ".git").unlink()
    (root / ".git").symlink_to("store")
    assert b"store" in find_protected(root, {})


def test_a_linked_worktree_leads_to_the_common_configuration(root: Path, tmp_path: Path) -> None:
    common = tmp_path / "main" / ".git"
    (common / "worktrees" / "w").mkdir(parents=True)
    (common / "config").write_text("[core]\nhooksPath = hooks-of-ours\n")
    (common / "worktrees" / "w" / "commondir").write_text("../..\n")
    (root / ".git").rmdir()
    (root / ".git").write_text(f"gitdir: {common}/worktrees/w\n")
    assert b"hooks-of-ours" in find_protected(root, {})


def test_files_that_hooks_are_links_to_are_protected(root: Path) -> None:
    (root / ".git" / "hooks").mkdir()
    (root / "scripts").mkdir()
    (root / "scripts" / "lint").write_text("#!/bin/sh\n")
    (root / ".git" / "hooks" / "pre-commit").symlink_to("../../scripts/lint")
    protected = find_protected(root, {})
    assert b"scripts/lint" in protected
    assert b"scripts" not in protected


def test_a_project_inside_a_larger_repository(root: Path) -> None:
    configure(root, "[core]\nhooksPath = part/hooks\n")
    (root / "part").mkdir()
    assert find_protected(root / "part", {}) == frozenset({b"hooks"})


def test_no_repository_and_outside_hooks_protect_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert find_protected(tmp_path / "plain", {}) == frozenset()
    configure(root, f"[core]\nhooksPath = {tmp_path}/elsewhere\n")
    assert find_protected(root, {}) == {b".git", b".git/hooks"}


def test_an_unreadable_or_giant_configuration_is_an_error(root: Path) -> None:
    (root / ".git" / "config").mkdir()
    with pytest.raises(StateError, match="git configuration config: Is a directory"):
        find_protected(root, {})
    (root / ".git" / "config").rmdir()
    with (root / ".git" / "config").open("wb") as stream:
        stream.truncate(200 << 30)
    with pytest.raises(StateError, match="expected at most"):
        find_protected(root, {})


def test_includes_in_a_ring_end(root: Path) -> None:
    configure(root, "[include]\npath = config\n[core]\nhooksPath = h\n")
    assert set(config_values(root / ".git" / "config", "core.hookspath", home="")) == {"h"}


def test_what_a_protected_place_covers() -> None:
    node, folder = node_of(File(b"")), node_of({})
    protected = frozenset({b"tools/hooks"})
    assert is_protected(Change(b"tools/hooks", None, folder), protected)
    assert is_protected(Change(b"tools/hooks/x", None, node), protected)
    assert is_protected(Change(b"tools", folder, None), protected)
    assert not is_protected(Change(b"tools", None, folder), protected)
    assert not is_protected(Change(b"tools/hooks-other", None, node), protected)
    assert is_protected(Change(b"any", None, node), frozenset({b""}))


@given(st.text(max_size=60))
def test_no_configuration_text_raises(text: str) -> None:
    assert all(key == key.lower() for _, key, _ in parse_config(text))


def test_values_are_read_as_git_reads_them() -> None:
    text = '[a "B"]\nkey = " x " y \\t# no\nflag\n[c] k = "a#b" \\"q\\"\n'
    assert list(parse_config(text)) == [
        ("a", "key", " x  y \t"),
        ("a", "flag", ""),
        ("c", "k", 'a#b "q"'),
    ]
    assert os.sep == "/"
