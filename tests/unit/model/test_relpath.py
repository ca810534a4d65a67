"""Paths as bytes: what may be inside a tree, and how it is shown."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.relpath import (
    fold,
    link_escapes,
    parse_name,
    parse_path,
    path_from_json,
    path_to_json,
    show,
    touches_git,
)

names = st.binary(min_size=1, max_size=12).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)


@given(paths)
def test_good_paths_pass_and_survive_json(path: bytes) -> None:
    assert parse_path(path) == path
    assert path_from_json(path_to_json(path)) == path


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/etc/passwd",
        b"a//b",
        b"a/",
        b"./a",
        b"a/../b",
        b"..",
        b"a\0b",
        b"x" * 256,
        b"a/" * 2048 + b"a",
    ],
)
def test_paths_that_are_not_inside_a_tree_are_refused(path: bytes) -> None:
    with pytest.raises(InputError, match=r"^path: "):
        parse_path(path)


def test_a_name_is_not_a_path() -> None:
    with pytest.raises(InputError, match="holds a slash or a NUL byte"):
        parse_name(b"a/b")


@pytest.mark.parametrize(
    "path",
    [
        b".git",
        b".git/hooks/pre-commit",
        b"sub/.GIT/config",
        b".Git",
        b"git~1/x",
        b".git. ",
        b".git::$INDEX_ALLOCATION/x",
        ".g\u200cit".encode(),
        "\ufeff.git".encode(),
        ".\uff47it".encode(),
    ],
)
def test_whatever_git_could_take_for_its_folder_is_seen(path: bytes) -> None:
    assert touches_git(path)


@pytest.mark.parametrize("path", [b".gitignore", b".github/x", b"git", b"a.git", b"git~2"])
def test_neighbours_of_git_are_left_alone(path: bytes) -> None:
    assert not touches_git(path)


def test_names_that_differ_by_case_or_form_fold_to_one() -> None:
    assert fold(b"README") == fold(b"readme")
    assert fold("\u00e9".encode()) == fold("e\u0301".encode())
    assert fold(b"\xff") != fold(b"\xfe")


@pytest.mark.parametrize(
    ("path", "target", "escapes"),
    [
        (b"a", b"b", False),
        (b"a/b", b"../c", False),
        (b"a/b", b"../../c", True),
        (b"a", b"..", True),
        (b"a", b"/etc", True),
        (b"a", b"", True),
        (b"a/b", b".././c//d", False),
        (b"a", b"x/../..", True),
        (b"a/b", b"../../a/b", True),
    ],
)
def test_links_out_of_the_tree_are_seen(path: bytes, target: bytes, escapes: bool) -> None:
    assert link_escapes(path, target) is escapes


@given(paths, st.lists(st.sampled_from([b"..", b".", b"x", b""]), min_size=1).map(b"/".join))
def test_a_link_that_stays_inside_ends_inside(path: bytes, target: bytes) -> None:
    if not link_escapes(path, target):
        end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        assert end.split(b"/")[0] != b".."


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"path": "a", "path_b64": "YQ=="},
        {"path_b64": "YQ=="},
        {"path_b64": "/w"},
        {"path_b64": "/x=="},
        {"path_b64": "!"},
        {"path": 7},
        {"path": "\udcff"},
    ],
)
def test_a_second_spelling_of_a_path_is_refused(item: dict[str, object]) -> None:
    with pytest.raises(InputError, match="path"):
        path_from_json(item)


def test_what_is_not_text_is_shown_escaped() -> None:
    assert show("h\u00e9.py".encode()) == "h\u00e9.py"
    assert show(b"a\xff\x1b[0m\n\\") == "a\\xff\\x1b[0m\\x0a\\\\"
    assert show("\u202e".encode()) == "\\xe2\\x80\\xae"


@given(st.binary(max_size=30))
def test_shown_paths_are_printable_and_keep_paths_apart(path: bytes) -> None:
    assert show(path).isprintable()
    assert show(path) != show(path + b"\xff")
