"""Layers: what a stack shows is the snapshot, nothing is written twice, and edits are noticed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import StateError, VerificationError
from harness.execution.snapshot import entry_reader, layer_writer
from harness.execution.snapshot.layers import MAX_DEPTH
from harness.execution.snapshot.read_file import read_once
from harness.model.tree import walk
from tests.fakes.project_tree import OWNER, PROJECT, ProjectTree, content_of, merge_layers

MANY: dict[str, bytes | str | None] = {f"lib/f{number}": f"{number}" * 50 for number in range(40)}


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        patch.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    made = ProjectTree(tmp_path)
    made.write(MANY)
    return made


def test_a_full_layer_shows_the_project_with_fixed_owner_modes_and_times(
    tree: ProjectTree,
) -> None:
    tree.write({"empty": None, "run": "x"})
    (tree.root / "run").chmod(0o4775)
    (tree.root / "link").symlink_to("run")
    (layer,) = tree.view(tree.take()).layers
    assert content_of(layer) == content_of(tree.root)
    for path in [layer, *layer.rglob("*")]:
        found = path.lstat()
        assert (found.st_uid, found.st_gid) == OWNER
        assert found.st_mtime_ns == 315_532_800 * 10**9
        if path.is_symlink():
            continue
        wide = path.is_dir() or path.name == "run"
        assert stat.S_IMODE(found.st_mode) == (0o755 if wide else 0o644)


def test_a_small_change_costs_a_small_layer(tree: ProjectTree) -> None:
    tree.write({"folder/a": "1", "file": "1", "gone/deep/x": "1"})
    first = tree.take()
    shutil.rmtree(tree.root / "gone")
    shutil.rmtree(tree.root / "folder")
    (tree.root / "file").unlink()
    tree.write({"file/inner": "2", "folder": "now a file", "lib/f1": "new"})
    second = tree.take()
    layers = tree.view(second).layers
    assert len(layers) == 2
    assert layers[1:] == tree.view(first).layers
    shown = content_of(layers[0])
    assert {path: look[0] for path, look in shown.items()} == {
        b"file": "folder",
        b"file/inner": "file",
        b"folder": "file",
        b"gone": "whiteout",
        b"lib": "folder",
        b"lib/f1": "file",
    }
    assert os.getxattr(layers[0] / "file", "user.overlay.opaque") == b"y"
    assert merge_layers(layers) == content_of(tree.root)
    tree.view(second).verify()
    tree.view(first).verify()


def test_an_unchanged_tree_writes_nothing_and_a_return_reuses_its_layer(tree: ProjectTree) -> None:
    first = tree.take()
    before = tree.stored()
    assert tree.take() == first
    assert tree.stored() == before
    tree.write({"lib/f1": "new"})
    tree.take()
    tree.write({"lib/f1": "1" * 50})
    assert tree.take() == first
    assert len(list(tree.state.layers.glob("????????"))) == 2


def test_a_large_change_gets_a_full_layer_and_a_deep_stack_is_squashed(tree: ProjectTree) -> None:
    tree.take()
    tree.write(dict.fromkeys(list(MANY)[:30], "other"))
    assert len(tree.view(tree.take()).layers) == 1
    depths = []
    for number in range(MAX_DEPTH + 2):
        tree.write({"lib/f1": f"{number}"})
        taken = tree.take()
        depths.append(len(tree.view(taken).layers))
        assert merge_layers(tree.view(taken).layers) == content_of(tree.root)
    assert max(depths) == MAX_DEPTH
    assert depths[-3:] == [2, 3, 4]
    full = [
        path for path in tree.state.layers.glob("????????/t/lib") if len(list(path.iterdir())) > 1
    ]
    assert len(full) == 2  # the first, and the one of the large change


def test_a_host_that_refuses_whiteouts_gets_a_full_layer(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.take()

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "mknod", refuse)
    (tree.root / "lib" / "f1").unlink()
    layers = tree.view(tree.take()).layers
    assert len(layers) == 1
    assert content_of(layers[0]) == content_of(tree.root)
    assert not list(tree.state.layers.glob(".*"))


def test_two_selections_of_one_project_do_not_replace_each_other(tree: ProjectTree) -> None:
    tree.write({"src/a": "1"})
    for number in range(3):
        tree.write({"src/a": f"{number}"})
        everything, part = tree.take(), tree.take(include=("src/",))
        assert set(tree.paths(part)) == {"src", "src/a"}
        assert merge_layers(tree.view(everything).layers) == content_of(tree.root)
    assert len(tree.view(everything).layers) == 3


def test_another_owner_gets_layers_of_its_own(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.take()
    (old,) = tree.view(first).layers
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "chown", lambda _name, uid, gid, **__: given.append((uid, gid)))
    monkeypatch.setattr(os, "fchown", lambda _fd, uid, gid: given.append((uid, gid)))
    assert tree.take(owner=(65532, 65532)) == first
    (new,) = tree.view(first).layers
    assert new != old
    assert set(given) == {(65532, 65532)}


@pytest.mark.parametrize("lost", ["t", "layer.json", "everything"])
def test_a_broken_stack_is_made_anew(tree: ProjectTree, lost: str) -> None:
    first = tree.take()
    tree.write({"lib/f1": "new"})
    tree.take()
    (layer,) = tree.view(first).layers
    if lost == "everything":
        shutil.rmtree(layer.parent)
    elif lost == "t":
        layer.rename(layer.with_name("x"))
    else:
        (layer.parent / lost).write_bytes(b"{}")
    with pytest.raises(VerificationError, match="has no layers here"):
        tree.view(first).verify()
    second = tree.take()
    tree.view(second).verify()
    assert merge_layers(tree.view(second).layers) == content_of(tree.root)


def test_a_damaged_list_is_a_named_error(tree: ProjectTree) -> None:
    taken = tree.take()
    (layer,) = tree.view(taken).layers
    (layer.parent / "files.json").write_bytes(b"[]")
    with pytest.raises(StateError, match="its list can't be read"):
        tree.view(taken).verify()


def edit(layer: Path) -> None:
    (layer / "lib" / "f1").write_bytes(b"2" * 50)


def swap_quietly(layer: Path) -> None:
    found = (layer / "lib" / "f1").stat()
    edit(layer)
    os.utime(layer / "lib" / "f1", ns=(found.st_atime_ns, found.st_mtime_ns))


def add(layer: Path) -> None:
    (layer / "lib" / "new").touch()


def remove(layer: Path) -> None:
    (layer / "lib" / "f1").unlink()


def set_mode(layer: Path) -> None:
    (layer / "lib" / "f1").chmod(0o755)


def replace_by_link(layer: Path) -> None:
    remove(layer)
    (layer / "lib" / "f1").symlink_to("f2")


def hide(layer: Path) -> None:
    os.setxattr(layer / "lib", "user.overlay.opaque", b"y")


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (edit, "lib/f1: expected sha256:"),
        (swap_quietly, "lib/f1: expected sha256:"),
        (add, "lib/new: was not there"),
        (remove, "lib/f1: is missing"),
        (set_mode, "lib/f1: has another mode"),
        (replace_by_link, "lib/f1: expected a file, got a symlink"),
        (hide, "lib: hides other paths"),
    ],
)
def test_a_layer_that_was_touched_is_named(tree: ProjectTree, tamper: Any, message: str) -> None:
    taken = tree.take()
    tree.view(taken).verify()
    tamper(tree.view(taken).layers[0])
    with pytest.raises(VerificationError, match=message):
        tree.view(taken).verify()


def test_a_layer_with_new_facts_and_the_same_content_passes(tree: ProjectTree) -> None:
    taken = tree.take()
    (layer,) = tree.view(taken).layers
    copy = layer.with_name("copy")
    shutil.copytree(layer, copy, symlinks=True)
    shutil.rmtree(layer)
    copy.rename(layer)
    tree.view(taken).verify()


def test_reading_is_verified_to_the_last_byte(tree: ProjectTree) -> None:
    tree.write({"big": b"x" * 3_000_000, "empty": ""})
    (tree.root / "link").symlink_to("big")
    taken = tree.take()
    view = tree.view(taken)
    with view.open(b"big") as stream:
        assert stream.read() == b"x" * 3_000_000
    with view.open(b"empty") as stream:
        assert stream.read() == b""
    assert view.read_link(b"link") == b"big"
    (view.layers[0] / "big").write_bytes(b"x" * 2_999_999 + b"y")
    with view.open(b"big") as stream, pytest.raises(VerificationError, match="big: expected"):
        stream.read()
    (view.layers[0] / "big").write_bytes(b"x" * 2_999_999)
    with view.open(b"big") as stream, pytest.raises(VerificationError, match="big: expected"):
        stream.read()


def test_a_path_that_is_no_file_is_not_opened(tree: ProjectTree) -> None:
    view = tree.view(tree.take())
    for path in (b"lib", b"nothing", b"lib/f1/below"):
        with pytest.raises(VerificationError, match="expected a file in the snapshot"):
            view.open(path)


def test_a_file_that_changes_between_scan_and_copy_is_scanned_again(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_reader, "KEPT_FILE", -1)
    changed: list[bytes] = []

    def change_once(name: bytes, *rest: Any, **options: Any) -> Any:
        if not changed:
            changed.append(name)
            (tree.root / "lib" / os.fsdecode(name)).write_bytes(b"late")
        return read_once(name, *rest, **options)

    monkeypatch.setattr(layer_writer, "read_once", change_once)
    taken = tree.take()
    with tree.view(taken).open(b"lib/" + changed[0]) as stream:
        assert stream.read() == b"late"
    assert merge_layers(tree.view(taken).layers) == content_of(tree.root)


def test_a_full_disk_leaves_no_half_layer(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(layer_writer, "write_all", full)
    with pytest.raises(StateError, match="write a layer: No space left") as caught:
        tree.take()
    assert caught.value.hint.startswith("free some disk space")
    assert list(tree.state.layers.iterdir()) == []


def test_what_a_killed_build_left_is_swept_and_nothing_else(tree: ProjectTree) -> None:
    mine, other = f".{PROJECT}.0badcafe", ".ffff.0badcafe"
    for name in (mine, other):
        (tree.state.layers / name / "t").mkdir(parents=True)
    tree.take()
    assert not (tree.state.layers / mine).exists()
    assert (tree.state.layers / other).exists()


def test_two_at_once_make_one_layer(tree: ProjectTree) -> None:
    taken: list[Any] = []
    threads = [threading.Thread(target=lambda: taken.append(tree.take())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 4
    assert len(set(taken)) == 1
    assert len(list(tree.state.layers.glob("????????"))) == 1


def test_a_damaged_heads_file_costs_a_full_layer_and_nothing_else(tree: ProjectTree) -> None:
    tree.take()
    heads = tree.state.project(PROJECT) / "layer-heads.json"
    for damage in ("", "[]", json.dumps({"latest": "../../etc"})):
        heads.write_text(damage)
        tree.write({"lib/f1": f"new {damage}"})
        assert len(tree.view(tree.take()).layers) == 1


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
EDITS = st.lists(
    st.tuples(PATHS, st.sampled_from(["write", "remove", "folder", "link"]), st.binary(max_size=2)),
    max_size=5,
)


def apply_edit(root: Path, path: str, action: str, content: bytes) -> None:
    place = root / path
    for parent in reversed(place.parents):
        if parent.is_relative_to(root) and (parent.is_symlink() or parent.is_file()):
            parent.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if action == "write":
        place.write_bytes(content)
    elif action == "folder":
        place.mkdir()
    elif action == "link":
        place.symlink_to("x")


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rounds=st.lists(EDITS, min_size=1, max_size=4))
def test_any_history_of_edits_is_shown_exactly(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str, bytes]]]
) -> None:
    tree = ProjectTree(tmp_path_factory.mktemp("history"))
    tree.write(dict(list(MANY.items())[:16]))
    for edits in rounds:
        for path, action, content in edits:
            apply_edit(tree.root, path, action, content)
        taken = tree.take()
        view = tree.view(taken)
        shown = content_of(tree.root)
        assert merge_layers(view.layers) == shown
        view.verify()
        for path_bytes, node in walk(view.load, taken.digest):
            if node.type == "file":
                with view.open(path_bytes) as stream:
                    assert stream.read() == shown[path_bytes][1]
