"""The CI job of the how-to page: its exit code is the verdict, and its key opens one gate only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from tests.e2e.conftest import At
from tests.e2e.driver import ROOT, SECONDS, Bed, untouched
from tests.e2e.project import run, seal

pytestmark = pytest.mark.docker

JOB = ROOT / "docs" / "examples" / "ci_job.sh"


def job(bed: Bed, report: Path, *, key: str = "cy", **env: str) -> tuple[int, str]:
    """Do the job with a key; return its exit code and stderr."""
    programs = bed.home / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "harness"
    program.write_text(f'#!/bin/sh\nexec {" ".join(bed.argv())} "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", JOB, "test", bed.key(key), report],
        cwd=bed.project,
        env={**bed.environment, "PATH": f"{programs}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def counts(report: Path) -> tuple[str | None, str | None]:
    (suite,) = parse(report).getroot().iter("testsuite")  # noqa: S314 - our own worker wrote it
    return suite.get("tests"), suite.get("failures")


def test_it_passes_and_fails_with_the_tests_and_leaves_their_report(
    bed: Bed, tmp_path: Path
) -> None:
    report = tmp_path / "junit.xml"
    with untouched(bed):
        code, said = job(bed, report)
        assert (code, said.startswith(f"wrote {report}, ")) == (0, True), said
    assert counts(report) == ("2", "0")
    (bed.project / "app" / "core.py").write_text("def answer():\n    return 40\n")
    assert job(bed, report)[0] == 1
    assert counts(report) == ("2", "1")


def test_without_a_verdict_it_is_neither_passed_nor_failed_and_leaves_no_report(
    bed: Bed, tmp_path: Path
) -> None:
    report = tmp_path / "junit.xml"
    report.write_text("of an earlier job")
    code, said = job(bed, report, key="eve")
    assert (code, "is nobody's in the reviewers file" in said) == (2, True), said
    code, said = job(bed, report, DOCKER_HOST="unix:///nonexistent/docker.sock")
    assert (code, "engine" in said) == (6, True), said
    assert not report.exists()
    assert bed.verbs().count("run.intent") == 0


def test_its_key_can_land_nothing(at: At) -> None:
    bed = at("begun")
    plan = seal(bed)
    bed("approve", plan, "--key", str(bed.key("cy")))
    diff = run(bed, plan)
    with untouched(bed):
        refusal = bed("approve", diff, "--key", str(bed.key("cy")), code=4).err
        assert "diff-approval@harness" in refusal
        bed("apply", diff, code=4)
