"""The door for host programs: deadlines, logs, and nothing left running."""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.errors import AcquisitionError, SandboxUnavailableError, StateError
from harness.execution.host.command import host_environment, read_command, run_command

ENVIRONMENT = host_environment({"SECRET": "s"})
# starts a child that would outlive it, says both numbers, then sleeps
FAMILY = "import os, time; pid = os.fork(); pid and print(pid, flush=True); time.sleep(60)"


def run(argv: list[str], log: Path, *, seconds: float = 20) -> None:
    run_command(argv, what="a test", environment=ENVIRONMENT, seconds=seconds, log=log)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_it_prints_goes_to_the_log_and_not_into_the_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(SandboxUnavailableError) as caught:
        run([sys.executable, "-c", "print('loud'); raise SystemExit(7)"], log)
    assert caught.value.message == "a test: expected exit 0, got 7"
    assert caught.value.hint == f"its output is in {log}"
    assert log.read_text().endswith("loud\n")


def test_nothing_of_the_callers_environment_comes_in_and_stdin_is_empty(tmp_path: Path) -> None:
    code = "import os, sys; print(sorted(os.environ), sys.stdin.read() == '')"
    text = read_command(
        [sys.executable, "-c", code], what="look", environment=ENVIRONMENT, seconds=20
    )
    names = str(sorted([*ENVIRONMENT]))
    assert text == f"{names} True\n"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_it_makes_does_not_depend_on_the_callers_umask(umask: int, tmp_path: Path) -> None:
    earlier = os.umask(umask)
    try:
        run([sys.executable, "-c", f"open({str(tmp_path / 'made')!r}, 'x')"], tmp_path / "log")
    finally:
        os.umask(earlier)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o644


def test_a_program_that_is_too_slow_is_ended_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(SandboxUnavailableError, match="expected an end within 3 s"):
        run([sys.executable, "-c", FAMILY], log, seconds=3)
    child = int(log.read_text().splitlines()[-1])
    assert not is_running(child)


def test_an_interrupt_ends_the_program_and_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def interrupt() -> None:
        while not log.exists() or log.read_text().count("\n") < 2:
            time.sleep(0.02)
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run([sys.executable, "-c", FAMILY], log, seconds=50)
    thread.join(5)
    assert time.monotonic() - begun < 20
    assert not is_running(int(log.read_text().splitlines()[-1]))


def test_the_class_of_the_error_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(AcquisitionError, match="fetch: /nowhere/program: No such file"):
        run_command(
            ["/nowhere/program"],
            what="fetch",
            environment=ENVIRONMENT,
            seconds=5,
            log=tmp_path / "log",
            error=AcquisitionError,
        )


def test_a_log_that_can_not_be_written_is_ours_to_say(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="write log"):
        run(["/bin/true"], tmp_path / "missing" / "log")
