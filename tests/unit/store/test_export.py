"""A file of a person's own choosing is written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import InputError, VerificationError
from harness.store.export import export_file


def broken() -> Iterator[bytes]:
    yield b"the first half"
    raise VerificationError("blob: stored bytes have another digest")


def test_the_bytes_are_exact_and_nothing_else_is_left(tmp_path: Path) -> None:
    export_file(tmp_path / "a", [b"one\r\n", b"", b"\0two"], replace=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"one\r\n\0two"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
def test_what_is_there_stays(tmp_path: Path, kind: str) -> None:
    target, other = tmp_path / "a", tmp_path / "other"
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_bytes(b"mine")
    else:
        if kind == "link":
            other.write_bytes(b"mine")
        target.symlink_to(other)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError, match="is there already") as caught:
        export_file(target, [b"new"], replace=False)
    assert "--force" in caught.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    for path in (target, other):
        assert not path.is_file() or path.read_bytes() == b"mine"


def test_with_replace_the_name_is_given_anew_and_no_link_is_followed(tmp_path: Path) -> None:
    target, other = tmp_path / "a", tmp_path / "other"
    other.write_bytes(b"mine")
    target.symlink_to(other)
    export_file(target, [b"new"], replace=True)
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert other.read_bytes() == b"mine"
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        export_file(tmp_path / "folder", [b"new"], replace=True)


@pytest.mark.parametrize("replace", [False, True])
def test_bytes_that_are_not_as_recorded_leave_nothing(tmp_path: Path, *, replace: bool) -> None:
    target = tmp_path / "a"
    if replace:
        target.write_bytes(b"mine")
    with pytest.raises(VerificationError):
        export_file(target, broken(), replace=replace)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([b"mine"] if replace else [])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        export_file(tmp_path / "nowhere" / "a", [b"x"], replace=False)
    with pytest.raises(InputError, match="null"):
        export_file(tmp_path / "a\0b", [b"x"], replace=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replace", [False, True])
def test_a_pipe_or_a_device_is_never_replaced(tmp_path: Path, *, replace: bool) -> None:
    target = tmp_path / "pipe"
    os.mkfifo(target)
    with pytest.raises(InputError, match="is a device, a pipe or a socket") as caught:
        export_file(target, [b"new"], replace=replace)
    assert "standard output" in caught.value.hint
    assert list(tmp_path.iterdir()) == [target]
    assert stat.S_ISFIFO(target.lstat().st_mode)


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_path_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="expected a name, got none"):
        export_file(Path(name), [b"new"], replace=True)
