"""Drives the command line of today on a state that an earlier harness wrote; needs no engine."""

from __future__ import annotations

from pathlib import Path

from harness.flows.session import Host, open_host
from harness.ledger.log import Ledger
from tests.e2e.described import require_described
from tests.e2e.driver import Done, borrowed_environment, run_here
from tests.fakes.old_state import OldState, unpack_old_state


class OldBed:
    """One earlier state with its project.

    Args:
        folder: is made, and holds both.
    """

    def __init__(self, folder: Path) -> None:
        self.at: OldState = unpack_old_state(folder)

    def __call__(self, *words: str, code: int = 0, state: Path | None = None) -> Done:
        """Run one command that ends as expected, on this state or on another one."""
        environment = {
            "HARNESS_STATE": str(state or self.at.state),
            "HOME": str(self.at.state.parent),
            "DOCKER_HOST": "unix:///nowhere",
        }
        with borrowed_environment(environment, self.at.project):
            done = run_here(*words)
        require_described(words, done.out, done.err)
        assert done.code == code, f"{words}: {done.code}\n{done.out}\n{done.err}"
        return done

    @property
    def host(self) -> Host:
        return open_host({"HARNESS_STATE": str(self.at.state)})

    @property
    def ledger(self) -> Ledger:
        return self.host.ledger

    def files(self) -> dict[Path, bytes]:
        """Return every file of the state, but for the locks, which hold nothing."""
        return {
            path: path.read_bytes()
            for path in self.at.state.rglob("*")
            if path.is_file() and path.name != "lock"
        }
