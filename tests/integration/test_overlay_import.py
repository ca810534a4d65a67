"""The importer against the kernel: random work in a real overlay, compared tree by tree."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.store.blobs import BlobStore
from tests.fakes.quarantine_case import QuarantineCase
from tests.fakes.trees import File, Link, Tree, changeset_between, read_tree, write_tree

pytestmark = [pytest.mark.root]

BASE: Tree = {
    b"README": File(b"read me\n"),
    b"run": File(b"#!/bin/sh\n", runs=True),
    b"link": Link(b"README"),
    b"src": {
        b"a.py": File(b"a = 1\n"),
        b"b.py": File(b"b = 2\n"),
        b"deep": {b"er": {b"c.py": File(b"c = 3\n"), b"\xff": File(b"raw")}},
    },
    b"empty": {},
    b"data": {b"one": File(b"1"), b"two": File(b"2")},
}


@pytest.fixture(autouse=True)
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting an overlay needs root")


@contextmanager
def overlay(folder: Path, base: Tree) -> Iterator[tuple[Path, Path]]:
    """Mount an overlay over a base tree; yield the merged folder and the upper layer."""
    lower, upper, work, merged = (folder / name for name in ("lower", "upper", "work", "merged"))
    write_tree(lower, base)
    for place in (upper, work, merged):
        place.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
    subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], check=True, timeout=30
    )
    try:
        yield merged, upper
    finally:
        subprocess.run(["umount", str(merged)], check=True, timeout=30)


def paths(root: Path, kind: Callable[[Path], bool]) -> list[Path]:
    return sorted(path for path in root.rglob("*") if kind(path))


def work(root: Path, dice: random.Random) -> None:
    """Do one random thing, as programs do it."""
    everything = [root, *paths(root, lambda path: True)]
    folders = [path for path in everything if path.is_dir() and not path.is_symlink()]
    files = [path for path in everything if path.is_file() and not path.is_symlink()]
    others = [path for path in everything if path != root]
    fresh = dice.choice(folders) / dice.choice(["n1", "n2", "a.py", "one", "deep"])
    act = dice.choice(
        ["write", "append", "touch", "chmod", "mkdir", "link", "remove", "rename", "swap", "hard"]
    )
    if act == "write" and not fresh.exists() and not fresh.is_symlink():
        fresh.write_bytes(dice.choice([b"", b"new\n", b"1"]))
    elif act == "append" and files:
        with dice.choice(files).open("ab") as stream:
            stream.write(b"more\n")
    elif act == "touch" and files:
        os.utime(dice.choice(files))
    elif act == "chmod" and files:
        dice.choice(files).chmod(dice.choice([0o644, 0o755, 0o600]))
    elif act == "mkdir" and not fresh.exists() and not fresh.is_symlink():
        fresh.mkdir()
    elif act == "link" and not fresh.exists() and not fresh.is_symlink():
        fresh.symlink_to("somewhere")
    elif act == "remove" and others:
        remove(dice.choice(others))
    elif act == "rename" and files and not fresh.is_dir():
        dice.choice(files).rename(fresh)
    elif act == "hard" and files and not fresh.exists() and not fresh.is_symlink():
        fresh.hardlink_to(dice.choice(files))
    elif act == "swap" and others:
        victim = dice.choice(others)
        was_folder = victim.is_dir() and not victim.is_symlink()
        remove(victim)
        if was_folder and dice.random() < 0.5:
            victim.write_bytes(b"was a folder")
        else:
            victim.mkdir()
            (victim / "inside").write_bytes(b"i")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize("seed", range(60))
def test_random_work_is_imported_as_the_difference_of_the_trees(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a test repeats by its seed
    with overlay(tmp_path, BASE) as (merged, upper):
        for _ in range(dice.randint(1, 25)):
            work(merged, dice)
        after = read_tree(merged)
    blobs = BlobStore(tmp_path / "objects")
    imported = QuarantineCase(blobs=blobs, base=BASE).run(upper)
    assert imported.changeset == changeset_between(BASE, after, blobs)
    assert imported.by_products == ()
    assert read_tree(tmp_path / "lower") == BASE


def do_nothing(root: Path) -> None:
    assert root.is_dir()


def remove_all(root: Path) -> None:
    for path in list(root.iterdir()):
        remove(path)


def make_again(root: Path) -> None:
    copy = root.parent / "copy"
    shutil.copytree(root / "src", copy, symlinks=True)
    shutil.rmtree(root / "src")
    shutil.copytree(copy, root / "src", symlinks=True)


@pytest.mark.parametrize("act", [do_nothing, remove_all, make_again])
def test_nothing_everything_and_the_same_again(tmp_path: Path, act: Callable[[Path], None]) -> None:
    blobs = BlobStore(tmp_path / "objects")
    with overlay(tmp_path, BASE) as (merged, upper):
        act(merged)
        after = read_tree(merged)
    imported = QuarantineCase(blobs=blobs, base=BASE).run(upper)
    assert imported.changeset == changeset_between(BASE, after, blobs)
    assert bool(imported.changeset.changes) == (act is remove_all)
