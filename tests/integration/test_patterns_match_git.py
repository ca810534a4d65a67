"""Our ignore rules against `git check-ignore`, the oracle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model.patterns import parse_ignore_file

GIT = ["git", "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"]

PLAIN = ["a", "b", "foo", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "\\", " ", "!", "#"]
ODD = ["]", "[", "[[:alpha:]]", "[]-a]", "**/", "/**", "a**", "-", "[^]]", "[\\a]", "[[:x:]]"]
ATOM = st.sampled_from([*PLAIN, *ODD, "[b-a]", "\\*"])
LINE = st.lists(ATOM, min_size=1, max_size=6).map("".join)
NAME = st.sampled_from(
    ["a", "b", "foo", "fooa", "ab", "a b", "]", "[", "-", "!a", "#", "\\", "*", "c"]
)
PATH = st.lists(NAME, min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("oracle")
    subprocess.run([*GIT, "init", "-q", str(root)], check=True)
    return root


def git_matches(root: Path, lines: list[str], path: str) -> bool:
    """Ask about one path that does not exist, so that it counts as a file."""
    (root / ".gitignore").write_bytes("\n".join(lines).encode())
    answer = subprocess.run(
        [*GIT, "check-ignore", "--no-index", "-z", "--stdin", "-v", "-n"],
        input=path.encode() + b"\0",
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    pattern = answer.stdout.split(b"\0")[2]
    return bool(pattern) and not pattern.startswith(b"!")


def ours(lines: list[str], path: str) -> bool:
    patterns = parse_ignore_file("\n".join(lines).encode())
    names = path.split("/")
    for depth in range(1, len(names)):
        if patterns.decide("/".join(names[:depth]).encode(), is_folder=True):
            return True
    return bool(patterns.decide(path.encode(), is_folder=False))


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(LINE, min_size=1, max_size=4), paths=st.lists(PATH, min_size=1, max_size=8))
def test_every_pattern_means_what_git_takes_it_for(
    repository: Path, lines: list[str], paths: list[str]
) -> None:
    for path in paths:
        assert ours(lines, path) == git_matches(repository, lines, path), (lines, path)
