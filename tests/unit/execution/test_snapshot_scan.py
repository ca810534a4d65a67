"""What enters a snapshot, what is refused, and that the digest depends on nothing else."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InputError, StateError
from harness.execution.snapshot import entry_reader, read_file
from harness.execution.snapshot.totals import LeftOut
from harness.model.relpath import MAX_DEPTH
from harness.store.handles import take_file_at
from tests.fakes.project_tree import ProjectTree, content_of


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        patch.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    return ProjectTree(tmp_path)


def test_files_folders_links_and_modes_enter(tree: ProjectTree) -> None:
    tree.write({"a.py": "a", "pkg/b.py": "b", "empty": None, "run": "#!"})
    (tree.root / "run").chmod(0o744)
    (tree.root / "pkg" / "link").symlink_to("../a.py")
    assert tree.paths(tree.take()) == {
        "a.py": "100644",
        "empty": "040000",
        "pkg": "040000",
        "pkg/b.py": "100644",
        "pkg/link": "120000",
        "run": "100755",
    }


def test_times_owner_place_and_group_bits_do_not_count(tmp_path: Path) -> None:
    one, other = ProjectTree(tmp_path / "1"), ProjectTree(tmp_path / "2")
    one.write({"b": "x", "a/c": "y"})
    other.write({"a/c": "y", "b": "x"})
    os.utime(other.root / "b", (1, 1))
    (other.root / "b").chmod(0o600)
    (other.root / "a").chmod(0o700)
    assert one.take().digest == other.take().digest


@pytest.mark.fault("L048")
@pytest.mark.fault("L051")
@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling"])
@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".git ", "sub/.git"])
def test_git_never_enters_in_any_form(
    tree: ProjectTree, tmp_path: Path, kind: str, name: str
) -> None:
    tree.write({"a": "1", "sub": None})
    plain = tree.take().digest
    place = tree.root / name
    if kind == "folder":
        tree.write({f"{name}/config": "x"})
    elif kind == "file":
        tree.write({name: "gitdir: /elsewhere"})
    else:
        place.symlink_to(tmp_path if kind == "link" else "/nowhere")
    assert tree.take().digest == plain


def test_a_submodule_enters_as_plain_files(tree: ProjectTree) -> None:
    tree.write({"sub/.git": "gitdir: ../.git/modules/sub", "sub/code.py": "x"})
    assert tree.paths(tree.take()) == {"sub": "040000", "sub/code.py": "100644"}


def test_ignored_paths_stay_out_and_what_holds_only_them_too(tree: ProjectTree) -> None:
    tree.write(
        {
            ".gitignore": "*.pyc\nbuild/\n!keep.pyc\n",
            "a.pyc": "",
            "keep.pyc": "",
            "build/out": "",
            "cache/x.pyc": "",
            "cache/deep/y.pyc": "",
            "sub/.gitignore": "/local\n",
            "sub/local": "",
            "sub/deep/local": "",
            "empty": None,
        }
    )
    assert set(tree.paths(tree.take())) == {
        ".gitignore",
        "keep.pyc",
        "sub",
        "sub/.gitignore",
        "sub/deep",
        "sub/deep/local",
        "empty",
    }


def test_include_takes_what_it_names_and_the_rules_beside_it(tree: ProjectTree) -> None:
    tree.write(
        {
            ".gitignore": "*.log\n",
            "README": "",
            "src/a.py": "",
            "src/a.log": "",
            "src/vendor/b.py": "",
            "docs/.gitignore": "",
            "docs/x": "",
            "tests/data/t.json": "",
        }
    )
    taken = tree.take(include=("src/", "*.json", "!src/vendor/"), exclude=("nothing",))
    assert set(tree.paths(taken)) == {
        ".gitignore",
        "src",
        "src/a.py",
        "tests",
        "tests/data",
        "tests/data/t.json",
    }


def test_exclude_is_final_for_all_below(tree: ProjectTree) -> None:
    tree.write({"a/b": "", "a/c": "", "d": ""})
    assert set(tree.paths(tree.take(exclude=("a/", "!a/b")))) == {"d"}


def test_secrets_stay_out_and_are_listed(tree: ProjectTree) -> None:
    key = "-----BEGIN PRIVATE " + "KEY-----\n" + "MC4CAQAwBQYDK2VwBCIEIFf0nGkV4eZtq8Yw3cB7m5aT"
    tree.write({".env": "A=1", "conf/server.key": key, "id_rsa.pub": "ssh-rsa AAAA", "a": "1"})
    taken = tree.take()
    assert taken.left_out == (
        LeftOut(b".env", "environment file"),
        LeftOut(b"conf/server.key", "private key"),
    )
    assert set(tree.paths(taken)) == {"a", "conf", "id_rsa.pub"}
    assert tree.take().left_out == taken.left_out
    admitted = tree.take(admit_secrets=("conf/",))
    assert "conf/server.key" in tree.paths(admitted)
    assert [item.path for item in admitted.left_out] == [b".env"]


@pytest.mark.fault("L034")
def test_special_files_and_escaping_links_are_refused_all_at_once(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"ok": "1", "sub": None})
    os.mkfifo(tree.root / "pipe")
    os.mkfifo(tree.root / "sub" / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tree.root)  # a socket's path is short
        server.bind("sock")
    (tree.root / "out").symlink_to("../elsewhere")
    (tree.root / "sub" / "absolute").symlink_to("/etc/passwd")
    with pytest.raises(InputError) as caught:
        tree.take()
    assert [issue.where for issue in caught.value.issues] == [
        "out",
        "pipe",
        "sock",
        "sub/absolute",
        "sub/pipe",
    ]
    assert caught.value.message == "snapshot: 5 paths can't enter"
    assert "is a fifo" in str(caught.value.issues[1])
    assert tree.stored() == []


def test_what_stays_out_is_not_refused(tree: ProjectTree) -> None:
    tree.write({".gitignore": "pipe\n", "a": "1"})
    os.mkfifo(tree.root / "pipe")
    (tree.root / "out").symlink_to("/etc/passwd")
    assert set(tree.paths(tree.take(exclude=("out",)))) == {".gitignore", "a"}


@pytest.mark.fault("L037")
def test_a_sparse_giant_is_refused_by_its_apparent_size_without_reading(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"small": "1"})
    with (tree.root / "giant").open("wb") as stream:
        stream.truncate(200 << 30)
    opened = count_opens(monkeypatch)
    with pytest.raises(InputError, match=r"expected at most 17179869184 bytes, got 2147483648\d\d"):
        tree.take()
    assert b"giant" not in opened
    assert tree.stored() == []


def test_unreadable_files_are_all_named(tree: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"a": "1", "b": "2"})

    def deny(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(read_file, "take_file_at", deny)
    with pytest.raises(InputError) as caught:
        tree.take()
    assert [issue.where for issue in caught.value.issues] == ["a", "b"]
    assert "can't be read: Permission denied" in str(caught.value.issues[0])


@pytest.mark.fault("L063")
def test_any_name_the_kernel_takes_enters_as_bytes(tree: ProjectTree) -> None:
    names = [b"\xff\xfe", b"n" * 255, b"new\nline", b"Case", b"case", b"\\back", b"-dash"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tree.root) + b"/" + name)).write_bytes(name)
    taken = tree.take()
    assert sorted(map(os.fsencode, tree.paths(taken))) == sorted(names)
    for name in names:
        with tree.view(taken).open(name) as stream:
            assert stream.read() == name


def make_deep(tree: ProjectTree, names: int, name: bytes) -> None:
    fd = os.open(tree.root, os.O_RDONLY)
    for _ in range(names):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


def test_the_deepest_tree_allowed_works_and_one_deeper_is_refused(tree: ProjectTree) -> None:
    make_deep(tree, MAX_DEPTH, b"d")
    taken = tree.take()
    assert len(tree.paths(taken)) == MAX_DEPTH
    tree.view(taken).verify()
    make_deep(ProjectTree(tree.root / "d"), MAX_DEPTH - 1, b"d")
    with pytest.raises(InputError, match="has more than 256 names"):
        tree.take()


def test_a_path_longer_than_the_kernel_takes_is_refused_by_name(tree: ProjectTree) -> None:
    make_deep(tree, 17, b"n" * 250)
    with pytest.raises(InputError, match="has more than 256 names or 4095 bytes"):
        tree.take()


def test_a_huge_folder_enters(tree: ProjectTree) -> None:
    for number in range(2000):
        (tree.root / f"f{number}").touch()
    assert tree.take().files == 2000


def count_opens(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    opened: list[bytes] = []
    real = take_file_at

    def counting(name: bytes, folder_fd: int, expected: os.stat_result) -> Any:
        opened.append(name)
        return real(name, folder_fd, expected)

    monkeypatch.setattr(read_file, "take_file_at", counting)
    return opened


def test_an_unchanged_tree_is_not_opened_again(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({".gitignore": "*.o\n", "a": "1", "sub/b": "2", "sub/.env": "S", "x.o": ""})
    first = tree.take()
    opened = count_opens(monkeypatch)
    assert tree.take() == first
    assert opened == []
    tree.write({"a": "2"})
    assert tree.take().digest != first.digest
    assert opened == [b"a"]  # read once: the layer is written from what the scan hashed


def test_what_is_too_large_to_keep_is_read_again_for_the_layer(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_reader, "KEPT_BYTES", 5)
    monkeypatch.setattr(entry_reader, "KEPT_FILE", 3)
    tree.write({"a": "1111", "b": "222", "c": "333", "d": "222"})
    opened = count_opens(monkeypatch)
    taken = tree.take()
    assert opened == [b"a", b"b", b"c", b"d", b"a", b"c"]
    assert content_of(tree.view(taken).layers[0]) == content_of(tree.root)


def test_a_file_written_just_before_the_scan_is_not_trusted(tree: ProjectTree) -> None:
    tree.write({"a": "1"})
    first = tree.take(clock=time.time_ns)
    found = (tree.root / "a").stat()
    tree.write({"a": "2"})
    os.utime(tree.root / "a", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert tree.take().digest != first.digest


def test_a_changed_rule_is_followed_although_no_file_changed(tree: ProjectTree) -> None:
    tree.write({".gitignore": "", "sub/a": "1", "sub/b": "2"})
    assert "sub/a" in tree.paths(tree.take())
    tree.write({".gitignore": "a\n"})
    assert "sub/a" not in tree.paths(tree.take())
    tree.write({"sub/.gitignore": "!a\n"})
    assert "sub/a" in tree.paths(tree.take())


def test_a_file_for_a_folder_and_back_is_judged_again(tree: ProjectTree) -> None:
    tree.write({".gitignore": "x/\n", "x/a": "1"})
    assert set(tree.paths(tree.take())) == {".gitignore"}
    (tree.root / "x" / "a").unlink()
    (tree.root / "x").rmdir()
    tree.write({"x": "file"})
    assert set(tree.paths(tree.take())) == {".gitignore", "x"}


def test_a_damaged_cache_costs_a_scan_and_nothing_else(tree: ProjectTree) -> None:
    tree.write({"a": "1"})
    first = tree.take()
    cache = next(tree.state.root.rglob("stat-cache.sqlite"))
    for damage in (b"", b"not a database" * 100, cache.read_bytes()[:3000]):
        cache.write_bytes(damage)
        assert tree.take() == first


def test_a_file_that_never_rests_is_refused_by_name(
    tree: ProjectTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"busy.log": "1", "still": "1"})
    real = take_file_at

    def touch_and_open(name: bytes, folder_fd: int, expected: os.stat_result) -> Any:
        if name == b"busy.log":
            with (tree.root / "busy.log").open("a") as stream:
                stream.write("x")
        return real(name, folder_fd, expected)

    monkeypatch.setattr(read_file, "take_file_at", touch_and_open)
    with pytest.raises(InputError, match=r"busy\.log: keeps changing while it is read"):
        tree.take()
    assert tree.stored() == []


@pytest.mark.fault("L029")
def test_a_folder_swapped_for_a_link_never_leads_outside(tree: ProjectTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"OUTSIDE")
    tree.write({"swap/f": "inside", "other": "1"})
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (tree.root / "swap").rename(tmp_path / "aside")
            (tree.root / "swap").symlink_to(outside)
            (tree.root / "swap").unlink()
            (tmp_path / "aside").rename(tree.root / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(150):
            try:
                taken = tree.take()
            except InputError:
                continue  # the link was seen, or nothing came to rest: both are right
            if "swap/f" in tree.paths(taken):
                with tree.view(taken).open(b"swap/f") as stream:
                    assert stream.read() == b"inside"
    finally:
        done.set()
        thread.join()
    for path in tree.state.root.rglob("*"):
        assert not path.is_file() or b"OUTSIDE" not in path.read_bytes()


@pytest.mark.parametrize("name", ["with:colon", "with,comma", "back\\slash"])
def test_a_state_folder_that_can_not_be_mounted_is_refused(tmp_path: Path, name: str) -> None:
    tree = ProjectTree(tmp_path / name)
    tree.write({"a": "1"})
    with pytest.raises(StateError, match="expected a path without"):
        tree.take()


def test_a_state_folder_inside_the_project_is_refused(tree: ProjectTree) -> None:
    tree.root = tree.state.root.parent
    with pytest.raises(StateError, match="lies inside the project"):
        tree.take()


NAMES = st.sampled_from(["a", "b", "a.b", "ä", "\udcff", "Z"])
TREES = st.recursive(
    st.binary(max_size=3),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


def lay_out(folder: Path, value: Any) -> None:
    for name, inner in value.items():
        if isinstance(inner, dict):
            (folder / name).mkdir()
            lay_out(folder / name, inner)
        else:
            (folder / name).write_bytes(inner)
            if inner[:1] > b"\x80":
                (folder / name).chmod(0o755)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(one=TREES, other=TREES)
def test_equal_trees_have_equal_digests_and_others_do_not(
    tmp_path_factory: pytest.TempPathFactory, one: Any, other: Any
) -> None:
    digests = []
    for value in (one, other, one):
        tree = ProjectTree(tmp_path_factory.mktemp("tree"))
        lay_out(tree.root, value)
        digests.append(tree.take().digest)
    assert digests[0] == digests[2]
    assert (digests[0] == digests[1]) == (one == other)


def test_hard_links_are_broken(tree: ProjectTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"1")
    os.link(outside, tree.root / "a")
    os.link(outside, tree.root / "b")
    (layer,) = tree.view(tree.take()).layers
    looks = [(layer / name).stat() for name in "ab"]
    assert all(look.st_nlink == 1 and stat.S_IMODE(look.st_mode) == 0o644 for look in looks)
    assert looks[0].st_ino != looks[1].st_ino
