"""A person at a real pseudo-terminal: reads what appears, and types."""

from __future__ import annotations

import os
import select
import subprocess
import time

from tests.e2e.driver import Bed

SECONDS = 60.0


class Person:
    """Runs one command with a pseudo-terminal as stdin, stdout and stderr.

    Args:
        bed: where.
        words: of the command.
    """

    def __init__(self, bed: Bed, *words: str, **env: str) -> None:
        self._terminal, theirs = os.openpty()
        self._process = subprocess.Popen(
            bed.argv(*words),
            cwd=bed.project,
            env={**bed.environment, **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = b""

    def wait_for(self, text: str) -> None:
        """Read until a text was seen."""
        until = time.monotonic() + SECONDS
        while text.encode() not in self.seen:
            assert time.monotonic() < until, self.seen
            assert self._read(), self.seen

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def end(self) -> tuple[int, str]:
        """Read to the end; return the exit code and all that was seen."""
        while self._read():
            pass
        code = self._process.wait(SECONDS)
        os.close(self._terminal)
        return code, self.seen.decode("utf-8", "backslashreplace")

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], SECONDS)
        assert ready, self.seen
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # the other side was closed
            return False
        self.seen += data
        return bool(data)
