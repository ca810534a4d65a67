"""The rules of the lanes hold with two workers: whole files, tests alone, promises, none lost.

A small suite of its own runs under the real `tests/conftest.py` and `tests/turns.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

WHOLE = """
import os, pytest

@pytest.fixture(scope="module")
def costly():
    with open("made", "a") as made:
        made.write("x")

@pytest.mark.parametrize("number", range(6))
def test_of_the_file(costly, number):
    pass
"""
TIMED = """
import json, os, time, pytest

def work(kind, seconds):
    begun = time.monotonic()
    time.sleep(seconds)
    with open("times", "a") as times:
        times.write(json.dumps([begun, time.monotonic(), kind, os.getpid()]) + "\\n")

@pytest.mark.parametrize("number", range(12))
def test_beside_others(number):
    work("beside", 0.1)

@pytest.mark.alone
@pytest.mark.timeout(0.3)
@pytest.mark.parametrize("number", range(2))
def test_that_measures(number):
    work("alone", 0.05)

def test_that_is_long():
    work("beside", 0.6)
"""
SKIPPED = """
import pytest

@pytest.mark.docker
def test_of_an_engine():
    pytest.skip("no engine")

@pytest.mark.root
def test_of_root():
    pytest.skip("not root")
"""
SKIPPED_FILE = """
import pytest

pytest.skip("not here", allow_module_level=True)
"""

BROKEN = """
import pytest

class Bomb:
    def pytest_runtest_logfinish(self):
        raise SystemError("a plugin that fails in the worker")

@pytest.fixture
def bomb(request):
    if hasattr(request.config, "workerinput"):
        request.config.pluginmanager.register(Bomb())

def test_that_breaks_its_worker(bomb):
    pass
"""


def run_suite(
    folder: Path, files: dict[str, str], *more: str, workers: int, require: str = ""
) -> tuple[int, list[str]]:
    """Run a small suite; return pytest's exit code and its lines."""
    shutil.copy(TESTS.parent / "pyproject.toml", folder)
    for name in ("conftest.py", "turns.py"):
        (folder / "tests").mkdir(exist_ok=True)
        shutil.copy(TESTS / name, folder / "tests")
    for name, text in files.items():
        path = folder / "tests" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    lane = {"HARNESS_LANE": "small", "HARNESS_LANE_MINUTES": "3", "HARNESS_LANE_START": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"-n{workers}", *more, "tests"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HARNESS_REQUIRE": require, **lane},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_whole_files_stay_together_and_nothing_runs_beside_a_test_alone(tmp_path: Path) -> None:
    files = {"integration/test_whole.py": WHOLE, "e2e/test_timed.py": TIMED}
    code, lines = run_suite(tmp_path, files, workers=2)
    assert code == 0, lines
    assert (tmp_path / "made").read_text() == "x"
    times = [json.loads(line) for line in (tmp_path / "times").read_text().splitlines()]
    assert len(times) == 15
    assert len({worker for *_, worker in times}) == 2
    for one, other in itertools.combinations(times, 2):
        if "alone" in (one[2], other[2]):
            assert one[1] <= other[0] or other[1] <= one[0], (one, other)
    assert any(
        one[1] > other[0] and other[1] > one[0] for one, other in itertools.combinations(times, 2)
    ), "two workers that never overlap share nothing"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_skip_breaks_a_promise_and_the_lane_says_what_it_used(
    tmp_path: Path, workers: int
) -> None:
    files = {"e2e/test_skipped.py": SKIPPED, "e2e/test_gone.py": SKIPPED_FILE}
    more = ("--continue-on-collection-errors",)
    code, lines = run_suite(tmp_path, files, *more, workers=workers, require="docker,vectors")
    assert code == 1
    told = [line for line in lines if "this lane promises " in line]
    assert any("promises docker tests: " in line and "no engine" in line for line in told), lines
    assert any("promises docker, vectors tests: " in line for line in told), lines
    assert any(line.startswith("lane small: used ") for line in lines), lines
    assert lines[-1].startswith("1 failed, 1 skipped, 1 error in "), "the count is the end"


def test_where_nothing_is_promised_a_skip_is_a_skip(tmp_path: Path) -> None:
    files = {"e2e/test_skipped.py": SKIPPED, "e2e/test_gone.py": SKIPPED_FILE}
    code, lines = run_suite(tmp_path, files, workers=0)
    assert code == 0
    assert any(line.startswith("3 skipped in ") for line in lines), lines


def test_a_session_that_lost_a_test_fails_and_names_it(tmp_path: Path) -> None:
    code, lines = run_suite(tmp_path, {"e2e/test_broken.py": BROKEN}, workers=2)
    assert code == pytest.ExitCode.INTERNAL_ERROR, lines
    test = "tests/e2e/test_broken.py::test_that_breaks_its_worker"
    assert f"LOST {test}: no worker told how it ended" in lines
