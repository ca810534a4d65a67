"""Which worker runs what, and when: rules for `pytest -n`.

Rules:
    * A file of `WHOLE_FILES` is one piece of work: its tests share costly fixtures of the module.
      Every other test is a piece by itself.
    * A test marked `alone` measures time: no other test runs while it does, in no worker. Its own
      time limit begins when its turn has come.
    * Every test that was collected is heard of again, or the session fails: pytest-xdist 3.8 ends
      with exit code 0 after an internal error in a worker, whatever that worker had left to do.

Without workers nothing here has an effect.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

WHOLE_FILES = (
    "tests/contract/",
    "tests/integration/",
    "tests/e2e/test_controller_image.py",
    "tests/e2e/test_rootless_engine.py",
    "tests/e2e/test_who_starts_it.py",
    "tests/e2e/test_whose_state.py",
)


class Pieces(LoadScopeScheduling):
    """Deals pieces of work to workers, those of many tests first."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the name of the piece that a test belongs to."""
        return nodeid.split("::", maxsplit=1)[0] if nodeid.startswith(WHOLE_FILES) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Pieces:
    """Deal by our pieces, whatever `--dist` says: its groups of marks need an older pytest."""
    return Pieces(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Let the process that deals the pieces keep a register."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Register())


class Register:
    """Notes which tests were dealt and which have ended."""

    def __init__(self) -> None:
        self._dealt: set[str] = set()
        self._lost: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note what a worker found; all of them find the same."""
        self._dealt.update(ids)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has ended."""
        self._dealt.discard(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a session that lost tests; one that failed or was stopped has said why."""
        if session.exitstatus == pytest.ExitCode.OK:
            self._lost = sorted(self._dealt)
        if self._lost:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that were lost."""
        for nodeid in self._lost:
            terminalreporter.write_line(f"LOST {nodeid}: no worker told how it ended", red=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test begin when its turn has come."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    # xdist gives each worker a folder of its own below one of the session.
    session = Path(item.config.getoption("basetemp")).parent
    with turn(session, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def turn(session: Path, *, alone: bool) -> Iterator[None]:
    """Wait until a test may run, and hold its turn for the block.

    One who waits to be alone holds the queue meanwhile, so that those who come later do not pass.

    Args:
        session: a folder that all workers share.
        alone: whether no other test may run at the same time.
    """
    with (session / "queue.lock").open("w") as queue, (session / "room.lock").open("w") as room:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            # Not by closing alone: a process that the test forked may still have it open.
            fcntl.flock(room, fcntl.LOCK_UN)
