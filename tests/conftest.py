"""Fixtures and rules every lane shares."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PROMISED = frozenset(filter(None, os.environ.get("HARNESS_REQUIRE", "").split(",")))
"""Markers that this lane promises to run: a skip of such a test is a failure."""

pytest_plugins = ("tests.turns",)


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    """Return the folder of the outside test vectors, beside the project or by HARNESS_SHARED."""
    shared = Path(os.environ.get("HARNESS_SHARED") or PROJECT.parent / "shared")
    vectors = shared / "vectors"
    if not vectors.is_dir():
        pytest.skip(f"no outside test vectors at {vectors}; set HARNESS_SHARED to their parent")
    return vectors


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a promised test into a failure."""
    del call
    report = yield
    if report.skipped:
        broken = sorted(mark for mark in PROMISED if item.get_closest_marker(mark))
        if broken and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = _broken_promise(broken, report.longrepr)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a whole file into an error: nobody knows which promises went with it."""
    report = yield
    if report.skipped and PROMISED:
        report.outcome = "failed"
        report.longrepr = _broken_promise(sorted(PROMISED), report.longrepr)
    return report


def _broken_promise(marks: list[str], reason: object) -> str:
    return f"this lane promises {', '.join(marks)} tests: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the lane used of its minute budget."""
    name = os.environ.get("HARNESS_LANE")
    if name:
        used = (time.time() - float(os.environ["HARNESS_LANE_START"])) / 60
        budget = os.environ["HARNESS_LANE_MINUTES"]
        terminalreporter.write_line(f"lane {name}: used {used:.1f} of {budget} minutes")
