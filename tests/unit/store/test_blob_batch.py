"""Many blobs at once end up as if they had been put one by one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from harness.errors import StateError
from harness.model.digest import digest_of
from harness.store.blob_batch import FEW, put_blobs
from harness.store.blobs import BlobStore


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, 200])
def test_every_blob_is_there_once_and_read_only(tmp_path: Path, count: int) -> None:
    store = BlobStore(tmp_path)
    items = [f"{number}".encode() for number in range(count)]
    store.put(b"0")
    put_blobs(store, items + items)
    for item in items:
        assert store.get(digest_of(item)) == item
        assert stat.S_IMODE(store.path_of(digest_of(item)).stat().st_mode) == 0o400
    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_full_disk_leaves_nothing_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore(tmp_path)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StateError, match="write blobs: No space left"):
        put_blobs(store, [f"{number}".encode() for number in range(100)])
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert list((tmp_path / "incoming").iterdir()) == []
