"""What the quarantine tests share: a store without the cost of real durability, an upper layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.store.blobs import BlobStore


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "objects")


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    (tmp_path / "upper").mkdir()
    return tmp_path / "upper"
