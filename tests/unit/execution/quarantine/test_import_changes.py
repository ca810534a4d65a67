"""Import: every kind of change is seen once, nothing hostile is followed, opened or imported."""

from __future__ import annotations

import os
import random
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ContainmentError, InputError, StateError, VerificationError
from harness.execution.quarantine import compare
from harness.execution.quarantine.import_changes import Imported, import_changes
from harness.execution.quarantine.rules import ImportRules
from harness.model.changeset import build_changeset, parse_changeset
from harness.model.digest import digest_of
from harness.model.recipe import Output
from harness.model.tree import EMPTY_FOLDER, Node, folder_bytes, folder_node
from harness.store.blobs import BlobStore
from tests.fakes.quarantine_case import QuarantineCase
from tests.fakes.trees import (
    TREES,
    File,
    Link,
    Tree,
    changeset_between,
    node_of,
    store_tree,
    write_upper,
)


def whiteout(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))


def ops(imported: Imported) -> dict[bytes, str]:
    return {change.path: change.op for change in imported.changeset.changes}


def reasons(imported: Imported) -> dict[bytes, tuple[str, str, str]]:
    return {item.path: (item.op, item.kind, item.reason) for item in imported.by_products}


def stored(blobs: BlobStore) -> int:
    return sum(1 for path in blobs.root.rglob("*") if path.is_file())


@settings(max_examples=150, deadline=None)
@given(TREES, TREES, st.integers(0, 2**16))
def test_any_upper_layer_gives_the_difference_of_the_two_trees(
    before: Tree, after: Tree, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        blobs, upper = BlobStore(Path(name) / "objects"), Path(name) / "upper"
        write_upper(upper, before, after, random.Random(seed))  # noqa: S311 - a test repeats by its seed
        imported = QuarantineCase(blobs=blobs, base=before).run(upper)
        expected = changeset_between(before, after, BlobStore(Path(name) / "others"))
        assert imported.changeset == expected
        assert imported.by_products == ()
        assert parse_changeset(imported.changeset.to_bytes()) == imported.changeset
        for change in imported.changeset.changes:
            for node in (change.before, change.after):
                assert node is None or blobs.has(node.digest)
        assert blobs.has(imported.changeset.result)


PATTERNS = st.lists(st.sampled_from(["a", "b/", "*b", "!c", "a/**", "/d", "**"]), max_size=3)


@settings(max_examples=150, deadline=None)
@given(TREES, TREES, PATTERNS, st.integers(0, 2**16))
def test_what_is_left_by_any_patterns_is_a_tree_and_nothing_is_silent(
    before: Tree, after: Tree, patterns: list[str], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        blobs, upper = BlobStore(Path(name) / "objects"), Path(name) / "upper"
        write_upper(upper, before, after, random.Random(seed))  # noqa: S311 - a test repeats by its seed
        case = QuarantineCase(blobs=blobs, base=before, writable=tuple(patterns))
        imported = case.run(upper)
        again, _ = build_changeset(blobs.get, imported.changeset.base, imported.changeset.changes)
        assert again == imported.changeset
        everything = {c.path for c in changeset_between(before, after, blobs).changes}
        shown = [c.path for c in imported.changeset.changes] + [
            item.path for item in imported.by_products
        ]
        assert sorted(shown) == sorted(everything)


def test_all_kinds_of_change_together(blobs: BlobStore, upper: Path) -> None:
    base: Tree = {
        b"edited": File(b"old"),
        b"gone": File(b"x"),
        b"runs": File(b"#!"),
        b"touched": File(b"same"),
        b"file-to-folder": File(b"f"),
        b"folder-to-file": {b"in": File(b"i"), b"deep": {b"er": File(b"e")}},
        b"link": Link(b"edited"),
        b"kept": {b"old": File(b"o"), b"still": File(b"s")},
    }
    (upper / "edited").write_bytes(b"new")
    whiteout(upper / "gone")
    whiteout(upper / "never-was")
    (upper / "runs").write_bytes(b"#!")
    (upper / "runs").chmod(0o755)
    (upper / "touched").write_bytes(b"same")
    (upper / "file-to-folder").mkdir()
    (upper / "file-to-folder" / "new").write_bytes(b"n")
    (upper / "folder-to-file").write_bytes(b"now a file")
    (upper / "link").symlink_to("kept")
    (upper / "kept").mkdir()
    whiteout(upper / "kept" / "old")
    (upper / "empty").mkdir()
    imported = QuarantineCase(blobs=blobs, base=base).run(upper)
    assert ops(imported) == {
        b"edited": "modify",
        b"empty": "add",
        b"file-to-folder": "modify",
        b"file-to-folder/new": "add",
        b"folder-to-file": "modify",
        b"folder-to-file/deep": "delete",
        b"folder-to-file/deep/er": "delete",
        b"folder-to-file/in": "delete",
        b"gone": "delete",
        b"kept/old": "delete",
        b"link": "symlink",
        b"runs": "mode",
    }
    assert imported.by_products == ()
    assert imported.flags == ()


def test_an_opaque_folder_hides_all_but_what_was_made_again(blobs: BlobStore, upper: Path) -> None:
    inner: Tree = {b"same": File(b"s"), b"lost": File(b"l"), b"sub": {b"x": File(b"x")}}
    (upper / "d" / "sub").mkdir(parents=True)
    (upper / "d" / "same").write_bytes(b"s")
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    imported = QuarantineCase(blobs=blobs, base={b"d": inner}).run(upper)
    assert ops(imported) == {b"d/lost": "delete", b"d/sub/x": "delete"}


@pytest.mark.fault("L037")
def test_a_sparse_giant_is_shown_and_not_read(blobs: BlobStore, upper: Path) -> None:
    with (upper / "giant").open("wb") as stream:
        stream.truncate(200 << 30)
    (upper / "other").write_bytes(b"fits")
    imported = QuarantineCase(blobs=blobs, base={}, max_bytes=1 << 20).run(upper)
    assert reasons(imported) == {b"giant": ("add", "file", "too-large")}
    assert imported.by_products[0].size == 200 << 30
    assert ops(imported) == {b"other": "add"}
    assert [flag.text for flag in imported.flags] == ["too large to import: 214748364800 bytes"]


def test_what_is_outside_the_writable_paths_is_not_even_stored(
    blobs: BlobStore, upper: Path
) -> None:
    (upper / "big").write_bytes(b"x" * 4096)
    (upper / "kept").write_bytes(b"same")
    imported = QuarantineCase(blobs=blobs, base={b"kept": File(b"same")}, writable=("src/",)).run(
        upper
    )
    assert reasons(imported) == {b"big": ("add", "file", "outside-writable")}
    assert imported.changeset.changes == ()
    assert imported.changeset.base == imported.changeset.result
    assert stored(blobs) == 2  # the base: its folder object and its one file


def test_fifos_sockets_and_devices_are_by_products_and_never_opened(
    blobs: BlobStore, upper: Path
) -> None:
    os.mkfifo(upper / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(upper / "socket"))
        imported = QuarantineCase(blobs=blobs, base={b"fifo": {b"in": File(b"")}}).run(upper)
    assert reasons(imported) == {
        b"fifo": ("modify", "fifo", "not-importable"),
        b"socket": ("add", "socket", "not-importable"),
    }
    assert imported.changeset.changes == ()


@pytest.mark.fault("L060")
def test_a_repository_made_in_the_run_is_one_by_product_and_blocks_nothing(
    blobs: BlobStore, upper: Path
) -> None:
    for name in (".git", ".GIT", "git~1", "sub/.git"):
        (upper / name / "hooks").mkdir(parents=True)
        (upper / name / "hooks" / "pre-commit").write_bytes(b"#!/bin/sh\n")
    (upper / "created").write_bytes(b"1")
    (upper / "staged").write_bytes(b"2")
    (upper / "committed").write_bytes(b"3")
    whiteout(upper / "deleted")
    imported = QuarantineCase(blobs=blobs, base={b"deleted": File(b"d")}).run(upper)
    assert {path: reason for path, (_, _, reason) in reasons(imported).items()} == {
        b".git": "git",
        b".GIT": "git",
        b"git~1": "git",
        b"sub/.git": "git",
    }
    assert ops(imported) == {
        b"committed": "add",
        b"created": "add",
        b"deleted": "delete",
        b"staged": "add",
        b"sub": "add",
    }


def test_ignored_paths_and_outputs_are_by_products(blobs: BlobStore, upper: Path) -> None:
    (upper / "build" / "deep").mkdir(parents=True)
    (upper / "build" / "report.xml").write_bytes(b"<r/>")
    (upper / "out.bin").write_bytes(b"\0")
    (upper / "fifo").mkdir()
    os.mkfifo(upper / "fifo" / "out")
    outputs = (
        Output(name="report", path="build/report.xml", report="junit"),
        Output(name="binary", path="out.bin"),
        Output(name="never", path="not/there"),
        Output(name="below", path="out.bin/below"),
        Output(name="pipe", path="fifo/out"),
    )
    imported = QuarantineCase(
        blobs=blobs, base={}, outputs=outputs, ignored=frozenset({b"build"})
    ).run(upper)
    assert reasons(imported) == {
        b"build": ("add", "folder", "ignored"),
        b"fifo/out": ("add", "fifo", "not-importable"),
        b"out.bin": ("add", "file", "output"),
    }
    assert [(a.name, a.path, a.size) for a in imported.artifacts] == [
        ("report", "build/report.xml", 4),
        ("binary", "out.bin", 1),
    ]
    assert blobs.get(imported.artifacts[0].digest) == b"<r/>"
    assert imported.missing == ("never", "below", "pipe")


def test_an_output_of_an_earlier_run_is_not_taken_for_this_one(
    blobs: BlobStore, upper: Path
) -> None:
    imported = QuarantineCase(
        blobs=blobs,
        base={b"report.xml": File(b"<stale/>")},
        outputs=(Output(name="report", path="report.xml"),),
    ).run(upper)
    assert imported.artifacts == ()
    assert imported.missing == ("report",)


def test_an_output_over_its_size_is_not_kept_and_is_told_apart_from_one_that_is_missing(
    blobs: BlobStore, upper: Path
) -> None:
    (upper / "fits").write_bytes(b"12345678")
    (upper / "over").write_bytes(b"123456789")
    with (upper / "sparse").open("wb") as file:
        file.truncate(200 << 30)
    outputs = (
        Output(name="fits", path="fits", max_bytes=8, type="text/plain"),
        Output(name="over", path="over", max_bytes=8),
        Output(name="never", path="never", max_bytes=8),
        Output(name="old", path="sparse"),
    )
    imported = QuarantineCase(blobs=blobs, base={}, outputs=outputs).run(upper)
    (kept,) = imported.artifacts
    assert (kept.name, kept.size, kept.type) == ("fits", 8, "text/plain")
    assert imported.missing == ("over", "never", "old")
    assert imported.too_large == (
        "output over: 9 bytes, over 8B",
        "output old: 214748364800 bytes, over the workspace",
    )
    assert not blobs.has(digest_of(b"123456789"))


def test_what_cannot_be_carried_over_is_flagged(blobs: BlobStore, upper: Path) -> None:
    (upper / "suid").write_bytes(b"s")
    (upper / "suid").chmod(0o4755)
    (upper / "one").write_bytes(b"linked")
    os.link(upper / "one", upper / "two")
    (upper / "marked").write_bytes(b"m")
    os.setxattr(upper / "marked", "user.note", b"hello")
    (upper / "sticky").mkdir()
    (upper / "sticky").chmod(0o1777)
    imported = QuarantineCase(blobs=blobs, base={}).run(upper)
    assert [(flag.path, flag.text) for flag in imported.flags] == [
        (b"marked", "extended attribute user.note is dropped"),
        (b"one", "hard link: becomes a file of its own"),
        (b"sticky", "mode bits 1000 are dropped"),
        (b"suid", "mode bits 4000 are dropped"),
        (b"two", "hard link: becomes a file of its own"),
    ]
    after = {c.path: c.after for c in imported.changeset.changes}
    assert after[b"suid"] == node_of(File(b"s", runs=True))
    assert imported.flags[0].to_json() == {
        "path": "marked",
        "text": "extended attribute user.note is dropped",
    }


def test_new_secret_looking_content_is_flagged_and_old_is_not(
    blobs: BlobStore, upper: Path
) -> None:
    key = b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + b"b3BlbnNzaC1rZXktdjEAAAAABG5vbmU" * 8
    key += b"\n-----END OPENSSH PRIVATE KEY-----\n"
    (upper / "new").write_bytes(key)
    (upper / "old").write_bytes(key + b"more\n")
    imported = QuarantineCase(blobs=blobs, base={b"old": File(key)}).run(upper)
    assert [flag.path for flag in imported.flags] == [b"new"]
    assert imported.flags[0].text.startswith("looks like a secret: ")


def test_byte_code_is_a_by_product_and_other_binaries_are_flagged(
    blobs: BlobStore, upper: Path
) -> None:
    (upper / "__pycache__").mkdir()
    (upper / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"\0")
    (upper / "b.pyc").write_bytes(b"\0")
    (upper / "picture").write_bytes(b"\x89PNG\0")
    (upper / "text").write_bytes(b"text\n")
    imported = QuarantineCase(blobs=blobs, base={}).run(upper)
    assert ops(imported) == {b"picture": "add", b"text": "add"}
    assert {path: reason[2] for path, reason in reasons(imported).items()} == {
        b"__pycache__": "ignored",
        b"b.pyc": "ignored",
    }
    assert [(flag.path, flag.text) for flag in imported.flags] == [
        (b"picture", "is binary: the patch shows no text to review")
    ]


def test_a_link_is_data_wherever_it_points(blobs: BlobStore, upper: Path) -> None:
    (upper / "passwd").symlink_to("/etc/passwd")
    (upper / "loop").symlink_to("loop")
    (upper / "up").symlink_to("..")
    imported = QuarantineCase(blobs=blobs, base={}).run(upper)
    assert ops(imported) == {b"loop": "add", b"passwd": "add", b"up": "add"}
    assert blobs.get(node_of(Link(b"/etc/passwd")).digest) == b"/etc/passwd"


@pytest.mark.fault("L063")
def test_names_are_bytes(blobs: BlobStore, upper: Path) -> None:
    top = os.fsencode(upper)
    for name in (b"\xff\xfe", b"new\nline", b"a" * 255, b"A", b"a"):
        with open(os.path.join(top, name), "wb"):  # noqa: PTH118, PTH123 - bytes, as on disk
            pass
    imported = QuarantineCase(blobs=blobs, base={}).run(upper)
    assert sorted(ops(imported)) == sorted([b"\xff\xfe", b"new\nline", b"a" * 255, b"A", b"a"])


def test_a_tree_deeper_than_any_path_ends_in_a_by_product(blobs: BlobStore, upper: Path) -> None:
    here = os.open(upper, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        imported = QuarantineCase(blobs=blobs, base={}).run(upper)
        assert len(imported.changeset.changes) == 256
        assert [(i.kind, i.reason) for i in imported.by_products] == [("folder", "not-importable")]
    finally:
        _remove_deep(upper, 3000)


def _remove_deep(upper: Path, depth: int) -> None:
    """Remove a chain of folders that is too long for one path: lift it up step by step."""
    (upper / "d").rename(upper / "0")
    for number in range(1, depth):
        (upper / str(number - 1) / "d").rename(upper / str(number))
        (upper / str(number - 1)).rmdir()
    (upper / str(depth - 1)).rmdir()


def test_too_many_names_are_refused(
    blobs: BlobStore, upper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "MAX_ENTRIES", 3)
    for number in range(4):
        (upper / str(number)).write_bytes(b"")
    before = stored(blobs)
    with pytest.raises(ContainmentError, match="expected at most 3 changed names"):
        QuarantineCase(blobs=blobs, base={}).run(upper)
    assert stored(blobs) == before + 1  # the base itself


@pytest.mark.parametrize("mark", ["user.overlay.redirect", "user.overlay.metacopy"])
def test_content_that_lies_elsewhere_is_refused(blobs: BlobStore, upper: Path, mark: str) -> None:
    (upper / "f").write_bytes(b"")
    os.setxattr(upper / "f", mark, b"/x")
    with pytest.raises(ContainmentError, match=f"expected its own content, got a mark {mark}"):
        QuarantineCase(blobs=blobs, base={}).run(upper)


def test_no_upper_layer_is_a_typed_error(blobs: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="open the workspace of a run"):
        QuarantineCase(blobs=blobs, base={}).run(tmp_path / "none")


def test_a_damaged_base_is_noticed(blobs: BlobStore, upper: Path) -> None:
    whiteout(upper / "f")
    data = folder_bytes({b"f": node_of(File(b"sealed"))})
    blobs.put(data)
    (upper.parent / "layer").write_bytes(b"other!")
    with pytest.raises(VerificationError, match=r"f: expected sha256:.* in the snapshot"):
        import_changes(
            upper,
            base=folder_node(data).digest,
            load=blobs.get,
            read_base=lambda path: (upper.parent / "layer").open("rb"),
            rules=ImportRules(writable=("**",), outputs=(), is_ignored=lambda *_: False),
            blobs=blobs,
            max_bytes=100,
        )


def test_the_upper_layer_is_left_as_it_was(blobs: BlobStore, upper: Path) -> None:
    (upper / "f").write_bytes(b"x")
    before = sorted((p.name, p.lstat().st_mode, p.lstat().st_ino) for p in upper.iterdir())
    QuarantineCase(blobs=blobs, base={}).run(upper)
    after = sorted((p.name, p.lstat().st_mode, p.lstat().st_ino) for p in upper.iterdir())
    assert before == after


def test_bad_patterns_and_output_paths_are_refused(blobs: BlobStore) -> None:
    with pytest.raises(InputError, match="path: "):
        ImportRules(
            writable=(), outputs=(Output(name="o", path="../o"),), is_ignored=lambda *_: False
        )


def test_a_folder_goes_along_only_when_all_it_held_went(blobs: BlobStore, upper: Path) -> None:
    base: Tree = {
        b"all": {b"a.py": File(b"1"), b"sub": {b"b.py": File(b"2")}},
        b"some": {b"a.py": File(b"1"), b"note.txt": File(b"3")},
        b"bare": {},
    }
    for name in ("all", "some", "bare"):
        whiteout(upper / name)
    imported = QuarantineCase(blobs=blobs, base=base, writable=("*.py",)).run(upper)
    assert set(ops(imported)) == {
        b"all",
        b"all/a.py",
        b"all/sub",
        b"all/sub/b.py",
        b"some/a.py",
    }
    assert set(reasons(imported)) == {b"some", b"some/note.txt", b"bare"}


def test_a_new_folder_comes_along_with_its_writable_file(blobs: BlobStore, upper: Path) -> None:
    (upper / "pkg" / "sub").mkdir(parents=True)
    (upper / "pkg" / "sub" / "m.py").write_bytes(b"1")
    (upper / "pkg" / "data").mkdir()
    (upper / "f").mkdir()
    (upper / "f" / "n.py").write_bytes(b"2")
    imported = QuarantineCase(
        blobs=blobs, base={b"f": File(b"not writable")}, writable=("*.py",)
    ).run(upper)
    assert ops(imported) == {b"pkg": "add", b"pkg/sub": "add", b"pkg/sub/m.py": "add"}
    assert reasons(imported) == {
        b"pkg/data": ("add", "folder", "outside-writable"),
        b"f": ("modify", "folder", "outside-writable"),
        b"f/n.py": ("add", "file", "outside-writable"),
    }


@pytest.mark.parametrize(
    "writable",
    [
        ("src/", "!src/vendor/"),
        ("src/**", "!src/vendor/"),
        ("src/**", "!vendor/"),
        ("**", "!src/vendor/*"),
        ("src", "!b"),
    ],
)
def test_a_negation_narrows_what_may_be_written(
    blobs: BlobStore, upper: Path, writable: tuple[str, ...]
) -> None:
    (upper / "src" / "vendor").mkdir(parents=True)
    (upper / "src" / "a").write_bytes(b"1")
    (upper / "src" / "vendor" / "b").write_bytes(b"2")
    base: Tree = {b"src": {b"vendor": {}}}
    imported = QuarantineCase(blobs=blobs, base=base, writable=writable).run(upper)
    assert ops(imported) == {b"src/a": "add"}
    assert reasons(imported) == {b"src/vendor/b": ("add", "file", "outside-writable")}


def test_an_empty_base_object_is_enough(blobs: BlobStore, upper: Path) -> None:
    assert store_tree({}, blobs) == Node(
        "folder", "040000", len(EMPTY_FOLDER), folder_node(EMPTY_FOLDER).digest
    )
    assert QuarantineCase(blobs=blobs, base={}).run(upper).changeset.changes == ()
