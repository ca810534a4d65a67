"""The patch against real git: applied to a checkout of the base it gives exactly the result."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from harness.errors import InputError, VerificationError
from harness.execution.quarantine.patch import changes_stat, render_patch
from harness.store.blobs import BlobStore
from tests.fakes.trees import (
    TREES,
    File,
    Item,
    Link,
    Tree,
    changeset_between,
    flatten,
    node_of,
    read_tree,
    write_tree,
)

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C", "GIT_CONFIG_GLOBAL": os.devnull}
MAX = 1 << 24


def git_apply(root: Path, patch: bytes, *flags: str) -> None:
    done = subprocess.run(
        ["git", "apply", *flags, "-"],
        cwd=root,
        input=patch,
        env={**ENV, "GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_CONFIG_NOSYSTEM": "1"},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def without_empty_folders(tree: Tree) -> Tree:
    found: dict[bytes, Item] = {}
    for name, item in tree.items():
        if isinstance(item, File | Link):
            found[name] = item
        elif inner := without_empty_folders(item):
            found[name] = inner
    return found


def check_round(folder: Path, before: Tree, after: Tree) -> bytes:
    blobs = BlobStore(folder / "objects")
    changeset = changeset_between(before, after, blobs)
    patch = render_patch(changeset, blobs=blobs, max_bytes=MAX)
    root = folder / "checkout"
    write_tree(root, without_empty_folders(before))  # as git checks it out
    if patch:
        git_apply(root, patch, "--check")
        git_apply(root, patch)
    assert without_empty_folders(read_tree(root)) == without_empty_folders(after)
    back = render_patch(changeset.reversed(), blobs=blobs, max_bytes=MAX)
    if back:
        git_apply(root, back)
    assert without_empty_folders(read_tree(root)) == without_empty_folders(before)
    return patch


def has_path_behind_a_loop(before: Tree, after: Tree) -> bool:
    """Tell whether one tree has a path where the other has a link that leads to itself."""
    for there, wanted in ((before, after), (after, before)):
        with tempfile.TemporaryDirectory() as name:
            write_tree(Path(name), there)
            for path in flatten(wanted):
                try:
                    os.lstat(os.path.join(os.fsencode(name), path))  # noqa: PTH118 - bytes
                except OSError as error:
                    if error.errno == errno.ELOOP:
                        return True
    return False


@settings(max_examples=25, deadline=None)
@given(TREES, TREES)
def test_git_apply_turns_any_base_into_the_result_and_back(before: Tree, after: Tree) -> None:
    assume(not has_path_behind_a_loop(before, after))
    with tempfile.TemporaryDirectory() as name:
        check_round(Path(name), before, after)


def test_git_can_not_put_a_folder_where_a_link_leads_to_itself(tmp_path: Path) -> None:
    """Our patch is right; git 2.39 takes the loop that lstat(2) reports for a failure."""
    before: Tree = {b"b": Link(b"b/c")}
    after: Tree = {b"b": {b"a": File(b"x\n")}}
    assert has_path_behind_a_loop(before, after)
    with pytest.raises(AssertionError, match="b/a: Too many levels of symbolic links"):
        check_round(tmp_path, before, after)


CASES: dict[str, tuple[Item | None, Item | None]] = {
    "add": (None, File(b"new\n")),
    "delete": (File(b"old\n"), None),
    "empty file": (None, File(b"")),
    "emptied": (File(b"x\n"), File(b"")),
    "mode": (File(b"#!\n"), File(b"#!\n", runs=True)),
    "mode and content": (File(b"#!\n"), File(b"#!/bin/sh\n", runs=True)),
    "binary": (File(b"\x89PNG\r\n\0\1"), File(b"\x89PNG\r\n\0\2")),
    "no newline at the end": (File(b"a\nb"), File(b"a\nc")),
    "newline gained": (File(b"a\nb"), File(b"a\nb\n")),
    "newline lost": (File(b"a\nb\n"), File(b"a\nb")),
    "crlf": (File(b"a\r\nb\r\nc\r\n"), File(b"a\r\nB\r\nc\r\n")),
    "mixed line ends": (File(b"a\r\nb\nc\r\n"), File(b"a\r\nb\nC\r\n")),
    "file to link": (File(b"x\n"), Link(b"other")),
    "link to file": (Link(b"other"), File(b"x\n")),
    "link changed": (Link(b"one"), Link(b"two")),
    "file to folder": (File(b"x\n"), {b"in": File(b"y\n")}),
    "folder to file": ({b"in": File(b"y\n"), b"deep": {b"er": File(b"z")}}, File(b"x\n")),
}


ODD_NAMES = (b"f", b"\xff\xfe raw", b'q"uote\\', b"a\tb", "\u00e9".encode(), b"-dash", b" lead")


@pytest.mark.fault("L056", "L057", "L059", "L061")
@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_change_under_each_kind_of_name(tmp_path: Path, case: str) -> None:
    before, after = CASES[case]
    check_round(
        tmp_path,
        {b"kept": File(b"k\n"), **(dict.fromkeys(ODD_NAMES, before) if before is not None else {})},
        {b"kept": File(b"k\n"), **(dict.fromkeys(ODD_NAMES, after) if after is not None else {})},
    )


@pytest.mark.fault("L059")
def test_only_the_changed_line_of_a_crlf_file_is_in_the_patch(tmp_path: Path) -> None:
    lines = [b"line %d\r\n" % number for number in range(50)]
    changed = [*lines[:25], b"edited\r\n", *lines[26:]]
    patch = check_round(tmp_path, {b"f": File(b"".join(lines))}, {b"f": File(b"".join(changed))})
    body = [line for line in patch.splitlines() if line[:1] in b"+-"][2:]
    assert body == [b"-line 25", b"+edited"]


@pytest.mark.fault("L045")
def test_nothing_of_the_tree_or_the_caller_configures_the_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[diff]\n external = {script}\n noprefix = true\n[core]\n pager = {script}\n"
        f' fsmonitor = {script}\n[diff "evil"]\n textconv = {script}\n command = {script}\n'
        "[color]\n ui = always\n"
    )
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(config))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    attributes = File(b"* diff=evil -text binary\nf -diff\n")
    before: Tree = {b".gitattributes": attributes, b"f": File(b"one\n")}
    after: Tree = {b".gitattributes": File(b"* binary\n"), b"f": File(b"two\n")}
    patch = check_round(tmp_path, before, after)
    assert b"-one\n+two\n" in patch
    assert b"GIT binary patch" not in patch
    assert not marker.exists()


def test_the_patch_of_a_changeset_is_always_the_same(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "objects")
    changeset = changeset_between(
        {b"a": File(b"1\n")}, {b"a": File(b"2\n"), b"b": File(b"\0")}, blobs
    )
    first = render_patch(changeset, blobs=blobs, max_bytes=MAX)
    assert first == render_patch(changeset, blobs=blobs, max_bytes=MAX)


def test_an_empty_changeset_and_empty_folders_give_no_text(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "objects")
    nothing = changeset_between({b"a": File(b"")}, {b"a": File(b"")}, blobs)
    assert render_patch(nothing, blobs=blobs, max_bytes=MAX) == b""
    folder = changeset_between({}, {b"d": {}}, blobs)
    assert render_patch(folder, blobs=blobs, max_bytes=MAX) == b""


def test_lines_are_counted_per_path(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "objects")
    name = b'x\xff"\t'
    before: Tree = {b"a": File(b"1\n2\n"), b"b": File(b"\0"), b"l": File(b"x\n")}
    after: Tree = {b"a": File(b"1\n3\n4\n"), b"b": File(b"\0\1"), name: File(b"n"), b"d": {},
                   b"l": Link(b"a")}  # fmt: skip
    stat = changes_stat(changeset_between(before, after, blobs), blobs=blobs, max_bytes=MAX)
    assert {item.change.path: (item.added, item.removed) for item in stat} == {
        b"a": (2, 1),
        b"b": (None, None),
        b"d": (None, None),
        b"l": (1, 1),
        name: (1, 0),
    }


def test_too_much_content_is_refused_before_git_is_started(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "objects")
    changeset = changeset_between({}, {b"f": File(b"x" * 100)}, blobs)
    with pytest.raises(InputError, match="expected at most 99 bytes of content, got 100"):
        render_patch(changeset, blobs=blobs, max_bytes=99)


def test_a_damaged_blob_is_never_shown(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "objects")
    changeset = changeset_between({}, {b"f": File(b"real\n")}, blobs)
    path = blobs.path_of(node_of(File(b"real\n")).digest)
    path.chmod(0o600)
    path.write_bytes(b"fake\n")
    with pytest.raises(VerificationError, match="stored bytes have another digest"):
        render_patch(changeset, blobs=blobs, max_bytes=MAX)
