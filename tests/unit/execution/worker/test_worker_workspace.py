"""The workspace's folders, options and measure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.execution.worker import workspace as module
from harness.execution.worker.remove_tree import remove_tree
from harness.execution.worker.watch import DiskWatch, FolderGauge
from harness.execution.worker.workspace import (
    NAME_COST,
    TOO_DEEP,
    Workspace,
    make_workspace,
    measure,
    overlay_options,
    remove_workspace,
)
from tests.fakes.engine import FAKE_IMAGE, FakeEngine


def make(folder: Path) -> Workspace:
    return make_workspace(folder, uid=os.geteuid(), gid=os.getegid())


def test_the_upper_layer_is_empty_dated_and_behind_a_private_folder(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    assert made.folder.stat().st_mode & 0o777 == 0o700
    assert made.upper.stat().st_mode & 0o777 == 0o755
    assert made.upper.stat().st_mtime == 315_532_800
    assert list(made.upper.iterdir()) == []


def test_little_free_space_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda _folder: 5)
    with pytest.raises(StateError, match="expected 536870912 bytes free, got 5"):
        make(tmp_path / "ws")


def test_layers_are_listed_top_first(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    options = overlay_options([Path("/s/b"), Path("/s/a")], made)
    assert options["o"].startswith("nosuid,nodev,lowerdir=/s/b:/s/a,upperdir=")
    assert options["o"].endswith(",userxattr")


@pytest.mark.parametrize("path", ["/s/a:b", "/s/a,b", "/s/a\\b", "relative"])
def test_a_path_that_options_can_not_carry_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(StateError, match="can't be a mount option"):
        overlay_options([Path(path)], make(tmp_path / "ws"))


def test_a_stack_beyond_one_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="400 layers need more than"):
        overlay_options([Path("/some/layer")] * 400, make(tmp_path / "ws"))


@pytest.mark.fault("L037")
def test_a_sparse_file_counts_with_its_apparent_size(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 30)
    assert measure(tmp_path) >= 1 << 30


def test_links_to_one_file_count_once_and_symlinks_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    alone = measure(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert measure(tmp_path) < alone + 10_000


def test_every_name_counts_although_an_empty_file_takes_no_blocks(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"empty-{number}").touch()
        (tmp_path / f"link-{number}").symlink_to("x")
    assert measure(tmp_path) == 200 * NAME_COST


def test_a_folder_that_denies_us_is_removed_with_what_it_holds(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    inner = made.upper / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    (made.upper / "a").chmod(0o500)
    engine = FakeEngine()
    remove_workspace(engine, made.folder, image_id=FAKE_IMAGE, labels={})
    assert not made.folder.exists()
    assert engine.calls == []


def test_removing_never_follows_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    outside.chmod(0o555)
    made = make(tmp_path / "ws")
    (made.upper / "link").symlink_to(outside)
    remove_workspace(FakeEngine(), made.folder, image_id=FAKE_IMAGE, labels={})
    assert (outside / "precious").exists()
    assert outside.stat().st_mode & 0o777 == 0o555
    outside.chmod(0o755)


def dig(folder: Path, depth: int) -> None:
    """Nest folders deeper than any path, as a worker can."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep-folder", dir_fd=descriptor)
        inner = os.open("deep-folder", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=descriptor))
    os.close(descriptor)


def test_a_tree_deeper_than_any_path_is_over_every_limit_and_is_removed(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    dig(made.upper, 1500)
    assert measure(made.upper) == TOO_DEEP
    remove_workspace(FakeEngine(), made.folder, image_id=FAKE_IMAGE, labels={})
    assert not made.folder.exists()


def test_a_link_in_the_place_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "ws").symlink_to(tmp_path / "precious")
    remove_tree(tmp_path / "ws")
    assert (tmp_path / "precious" / "file").exists()


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    remove_workspace(FakeEngine(), tmp_path / "none", image_id=FAKE_IMAGE, labels={})


def test_what_the_kernel_left_is_emptied_through_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path / "ws")
    engine = FakeEngine()
    monkeypatch.setattr(
        module, "remove_tree", lambda folder: remove_tree(folder) if engine.calls else None
    )
    remove_workspace(engine, made.folder, image_id=FAKE_IMAGE, labels={"l": "1"})
    calls = ["create_volume", "create_container", "copy_out", "remove", "remove_volume"]
    assert engine.calls == calls
    assert not made.folder.exists()


def test_the_watch_tells_excess_once_and_for_all(tmp_path: Path) -> None:
    with DiskWatch(FolderGauge(tmp_path), 50_000) as watch:
        assert watch.check() == ""
        (tmp_path / "big").write_bytes(b"x" * 60_000)
        assert watch.check() == "disk"
        (tmp_path / "big").unlink()
        assert watch.excess == "disk"
