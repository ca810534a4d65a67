"""Snapshots beside git's own index, and layers beside the kernel's own overlay."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.execution.snapshot.ignore import IgnoreRules
from harness.model.tree import walk
from tests.fakes.project_tree import ProjectTree, content_of

GIT = ["git", "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"]


def git_files(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return mode and content of everything `git add -A` puts into a fresh index."""
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> bytes:
        return subprocess.run(
            [*GIT, *arguments], cwd=root, env=environment, check=True, capture_output=True
        ).stdout

    git("init", "-q", ".")
    git("add", "-A")
    found: dict[bytes, tuple[str, bytes]] = {}
    for line in git("ls-files", "-s", "-z").split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, blob, _ = head.split(b" ")
        found[path] = mode.decode(), git("cat-file", "blob", blob.decode())
    shutil.rmtree(root / ".git")
    return found


NAME = st.sampled_from(["a", "b", "foo", "x.pyc", "build", "keep", "\udcff"])
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
RULE = st.sampled_from(
    ["*.pyc", "build/", "!keep", "/a", "foo", "**/b", "a/*", "!a/b", "!*/", "b/**", "*", "fo?"]
)
FILES = st.dictionaries(PATH, st.binary(max_size=3), max_size=8)
RULES = st.dictionaries(
    st.sampled_from(["", "a/", "b/", "a/b/", "foo/"]), st.lists(RULE, max_size=3), max_size=3
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files=FILES, rules=RULES)
def test_the_files_of_a_snapshot_are_those_git_would_add(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], rules: dict[str, list[str]]
) -> None:
    tree = ProjectTree(tmp_path_factory.mktemp("oracle"))
    wanted: dict[str, bytes] = {
        **{folder + ".gitignore": "\n".join(lines).encode() for folder, lines in rules.items()},
        **files,
    }
    for name, content in wanted.items():
        place = tree.root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o755 if content[:1] > b"\x80" else 0o644)
        except OSError:
            continue  # a file where another path wants a folder, or the reverse
    taken = tree.take()
    view = tree.view(taken)
    ours = {
        path: (node.mode, view.open(path).read())
        for path, node in walk(view.load, taken.digest)
        if node.type != "folder"
    }
    assert ours == git_files(tree.root)
    answers = IgnoreRules.from_tree(view.load, taken.digest)
    assert not any(
        answers.is_ignored(path, node.type == "folder")
        for path, node in walk(view.load, taken.digest)
    )


def test_a_linked_worktree_is_frozen_without_its_git_folder(tmp_path: Path) -> None:
    main = tmp_path / "main"
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*GIT, "init", "-q", str(main)], check=True)
    (main / "a").write_text("1")
    subprocess.run([*GIT, "add", "a"], cwd=main, check=True)
    subprocess.run([*GIT, *identity, "commit", "-qm", "1"], cwd=main, check=True)
    tree = ProjectTree(tmp_path / "work")
    tree.root.rmdir()
    subprocess.run([*GIT, "worktree", "add", "-q", str(tree.root)], cwd=main, check=True)
    assert (tree.root / ".git").is_file()
    shutil.rmtree(main)
    assert set(tree.paths(tree.take())) == {"a"}


@pytest.mark.root
def test_the_kernel_shows_a_stack_as_the_snapshot(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting an overlay needs root")
    tree = ProjectTree(tmp_path)
    for number in range(40):
        tree.write({f"lib/f{number}": f"{number}" * 50})
    tree.write({"folder/a": "1", "folder/deep/b": "1", "file": "1", "gone/x": "1"})
    tree.take()
    shutil.rmtree(tree.root / "gone")
    shutil.rmtree(tree.root / "folder")
    (tree.root / "file").unlink()
    tree.write({"file/inner": "2", "folder": "now a file", "lib/f1": "new"})
    tree.take()
    (tree.root / "folder").unlink()
    tree.write({"folder/c": "3", "gone": "back as a file"})
    layers = tree.view(tree.take()).layers
    assert len(layers) == 3
    upper, work, point = (tmp_path / name for name in ("upper", "work", "point"))
    for folder in (upper, work, point):
        folder.mkdir()
    lower = ":".join(map(str, layers))
    options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(point)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"this host mounts no overlay here: {mounted.stderr.decode().strip()}")
    try:
        assert content_of(point) == content_of(tree.root)
    finally:
        subprocess.run(["umount", str(point)], check=True)
