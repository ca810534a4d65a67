"""Standard streams that are closed, full, or read by nobody: no trace, no false verdict."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.conftest import At
from tests.e2e.driver import SECONDS, Bed
from tests.e2e.project import approve, seal

pytestmark = pytest.mark.docker


def in_shell(bed: Bed, words: str, streams: str) -> tuple[int, str]:
    """Run a command with its streams as a shell makes them; return its exit code and stderr."""
    shell = ("bash", "-o", "pipefail", "-c", f'"$@" {streams}', "bash")
    done = subprocess.run(
        [*shell, *bed.argv(*words.split())],
        cwd=bed.project,
        env=bed.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    said = done.stderr.decode()
    assert "Traceback" not in said
    assert "internal" not in said
    return done.returncode, said


@pytest.mark.parametrize(
    "words", ["--version", "--help", "runs list", "runs list --json", "ledger list", "diff RUN"]
)
def test_output_that_cannot_be_written_is_an_operators_matter(at: At, words: str) -> None:
    bed = at("ran")
    words = words.replace("RUN", bed.facts["run"])
    code, said = in_shell(bed, words, ">/dev/full")
    assert code == 6
    assert "output: No space left on device" in said


def test_an_error_that_cannot_be_said_keeps_its_code(bed: Bed) -> None:
    assert in_shell(bed, "run nothing-like-it", "2>/dev/full")[0] == 2
    assert in_shell(bed, "run nothing-like-it", ">/dev/full 2>/dev/full")[0] == 2


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_code_and_take_no_files_number(at: At, streams: str) -> None:
    bed = at("plan approved")
    assert in_shell(bed, f"run {bed.facts['plan']}", streams)[0] == 0
    bed.ledger.verify()
    assert in_shell(bed, "runs show nobody", streams)[0] == 2


@pytest.mark.parametrize("streams", ["| head -c 1", "--quiet | true", ">&-", "--json | true"])
def test_a_failed_run_stays_failed_whoever_reads(bed: Bed, streams: str) -> None:
    plan = seal(bed, "fail")
    approve(bed, plan)
    assert in_shell(bed, f"run {plan}", streams)[0] == 1


def test_a_run_whose_end_cannot_be_said_is_no_verdict(bed: Bed) -> None:
    plan = seal(bed)
    approve(bed, plan)
    assert in_shell(bed, f"run {plan}", ">/dev/full")[0] == 6
    assert "passed" in bed("runs", "list").out
