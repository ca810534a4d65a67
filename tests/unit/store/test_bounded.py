from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.store.bounded import read_bounded


def test_a_file_up_to_the_bound_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "file", 5) == b"12345"
    assert read_bounded(tmp_path / "link", 5) == b"12345"


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(OSError, match="expected at most 5 bytes") as caught:
        read_bounded(tmp_path / "huge", 5)
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "pipe"])
def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path, device: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(device)
    with pytest.raises(OSError, match="expected a regular file"):
        read_bounded(tmp_path / "link", 5)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read_bounded(tmp_path, 5)
