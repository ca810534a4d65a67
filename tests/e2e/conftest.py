"""End-to-end fixtures: the engine and the worker image of the lane, and beds at every station."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError
from harness.execution.host.find import find_engine
from harness.store.state import find_state_root, open_state
from tests.e2e.driver import ROOT, Bed
from tests.e2e.project import bring_to, make_project

At = Callable[[str], Bed]


@pytest.fixture(scope="session")
def engine_url() -> str:
    """Return the engine that the lane's own harness finds; skip when there is none."""
    try:
        return find_engine(os.environ, open_state(find_state_root(os.environ))).url
    except EngineUnreachableError as error:
        pytest.skip(f"{error.message}; run `harness setup`, or set DOCKER_HOST")


@pytest.fixture(scope="session")
def images_lock(engine_url: str) -> Path:
    """Return the lane's images.lock; the image is built when it never was."""
    lock = open_state(find_state_root(os.environ)).images_lock
    if not lock.exists():
        subprocess.run(
            [sys.executable, "-m", "harness", "image", "build", "python"],
            env={**os.environ, "DOCKER_HOST": engine_url, "PYTHONPATH": str(ROOT)},
            check=True,
            timeout=600,
        )
    return lock


@pytest.fixture(scope="session")
def _bed(engine_url: str, images_lock: Path, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    bed = Bed(home=tmp_path_factory.mktemp("bed"), engine=engine_url)
    for folder in (bed.project, bed.state):
        folder.mkdir(mode=0o700)
    shutil.copy(images_lock, bed.state)
    make_project(bed)
    return bed


@pytest.fixture
def at(_bed: Bed) -> At:
    """Return what brings the bed to a station of the main job."""

    def bring(station: str) -> Bed:
        bring_to(_bed, station)
        return _bed

    return bring


@pytest.fixture
def bed(at: At) -> Bed:
    """Return a bed with a fresh project: nothing is sealed yet."""
    return at("begun")
