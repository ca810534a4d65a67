"""Fixtures every lane shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    """Return the folder of the outside test vectors, beside the project or by HARNESS_SHARED."""
    shared = Path(os.environ.get("HARNESS_SHARED") or PROJECT.parent / "shared")
    vectors = shared / "vectors"
    if not vectors.is_dir():
        pytest.skip(f"no outside test vectors at {vectors}; set HARNESS_SHARED to their parent")
    return vectors
