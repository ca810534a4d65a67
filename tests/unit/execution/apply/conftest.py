"""What the apply tests share: a project, its state, and no cost of real durability."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes.apply_case import ApplyCase


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def case(tmp_path: Path) -> ApplyCase:
    return ApplyCase(tmp_path)
