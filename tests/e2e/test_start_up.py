"""The command starts quickly: what it does not need it does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from harness import __version__
from tests.e2e.driver import ROOT

ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
SECONDS = 0.2
SLOW = ("click", "docker", "rich", "cryptography", "requests", "yaml", "pathspec")


def imported_by(*words: str) -> set[str]:
    """Run the command in a fresh interpreter and return the modules it had imported at its end."""
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))\n"
        f"sys.argv = ['harness', *{list(words)!r}]\n"
        "from harness.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout
    return set(json.loads(done.stderr))


@pytest.mark.alone
def test_the_version_takes_a_fifth_of_a_second_at_most() -> None:
    """The quickest of five: a loaded machine can only make it slower."""
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "harness", "--version"],
            env=ENVIRONMENT,
            capture_output=True,
            check=True,
        )
        times.append(time.perf_counter() - begun)
        assert done.stdout.decode() == f"harness {__version__}\n"
    assert min(times) < SECONDS, times


def test_the_version_imports_nothing_that_is_slow() -> None:
    loaded = imported_by("--version")
    assert sorted(name for name in SLOW if name in loaded) == []


def test_help_imports_no_engine_and_no_cryptography() -> None:
    loaded = imported_by("--help")
    assert "click" in loaded
    assert sorted(name for name in SLOW if name != "click" and name in loaded) == []
