"""The Python API on the real engine: the example of the docs, every gate, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from tests.e2e.driver import ROOT, Bed, borrowed_environment, listing

pytestmark = pytest.mark.docker
EXAMPLE = ROOT / "docs" / "examples" / "land_a_change.py"


@pytest.fixture
def project(bed: Bed) -> Iterator[harness.Project]:
    with borrowed_environment(bed.environment, bed.project):
        yield harness.open_project()


def key(project: harness.Project, name: str = "ada") -> Path:
    return project.root.parent / "keys" / name


def test_the_example_of_the_docs_lands_a_change(
    tmp_path: Path, images_lock: Path, engine_url: str
) -> None:
    state, folder = tmp_path / "state", tmp_path / "p"
    for made in (state, folder):
        made.mkdir(mode=0o700)
    shutil.copy(images_lock, state)
    (folder / "a.py").write_text('x = {  "a":1 }\n')
    environment = {
        **os.environ,
        "HARNESS_STATE": str(state),
        "DOCKER_HOST": engine_url,
        "PYTHONPATH": str(ROOT),
    }
    for words in (
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{tmp_path / 'key'}"],
        [sys.executable, "-m", "harness", "init", "--key", f"{tmp_path / 'key'}.pub"],
        [sys.executable, f"{EXAMPLE}", "format", f"{tmp_path / 'key'}"],
    ):
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "format: passed\n  modify a.py\nlanded; " in done.stdout
    assert (folder / "a.py").read_text() == 'x = {"a": 1}\n'


def test_every_gate_stands_and_the_change_lands_once(project: harness.Project, bed: Bed) -> None:
    before = listing(bed.project)
    plan = project.seal("few", why="by a script")
    assert (plan.operations, plan.status) == (("few",), "waiting for approval")
    with pytest.raises(harness.AuthorityError, match="approval"):
        project.run(plan.hash)
    with pytest.raises(harness.InputError, match="is nobody's in the reviewers file"):
        project.approve(plan.hash, key=key(project, "eve"))
    with pytest.raises(harness.InputError, match="expected all 64 hex digits"):
        project.approve(plan.hash[:20], key=key(project))
    decision = project.approve(plan.hash, key=key(project))
    assert (decision.gate, decision.reviewer, decision.missing) == ("plan", "ada", "")
    assert project.plan(plan.run).status == "approved"

    pieces: list[tuple[str, bytes]] = []
    run = project.run(plan.hash, output=lambda stream, data: pieces.append((stream, data)))
    assert run.passed
    assert run == project.find_run(run.id) == project.runs()[-1]
    with pytest.raises(harness.AuthorityError, match="spent already"):
        project.run(plan.hash)

    (waiting,) = run.diffs
    diff = project.diff(run.id)
    assert diff.hash == waiting
    assert {change.path: change.op for change in diff.changes}["README.md"] == "modify"
    with pytest.raises(harness.AuthorityError, match="approval"):
        project.apply(waiting)
    assert listing(bed.project) == before

    project.approve(waiting, key=key(project))
    landed = project.apply(waiting)
    assert landed.landed
    assert (bed.project / "README.md").read_text() == "# Changed\n"
    with pytest.raises(harness.AuthorityError, match="landed already"):
        project.apply(waiting)
    reverse = project.undo(waiting)
    assert not reverse.landed
    assert project.reject(reverse.hash, key=key(project)).decision == "reject"
    with pytest.raises(harness.AuthorityError):
        project.approve(reverse.hash, key=key(project))
    assert project.read(run.operations[0].stdout) == b"".join(
        data for stream, data in pieces if stream == "stdout"
    )
    assert project.verify().startswith("sealed-harness/")
    bed.ledger.verify()


def test_ctrl_c_ends_the_run_then_interrupts(project: harness.Project, bed: Bed) -> None:
    plan = project.seal("slow")
    project.approve(plan.hash, key=key(project))
    main = threading.main_thread().ident
    assert main is not None
    with pytest.raises(KeyboardInterrupt):
        project.run(plan.hash, output=lambda _, __: signal.pthread_kill(main, signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert project.find_run(plan.run).kind == "interrupted"
    assert not any((bed.state / "runs").iterdir())


def test_a_recipe_that_fails_is_a_value(project: harness.Project) -> None:
    plan = project.seal("fail")
    project.approve(plan.hash, key=key(project))
    run = project.run(plan.hash)
    assert (run.passed, run.operations[0].outcome) == (False, "failed(3)")
    with pytest.raises(harness.AuthorityError, match="only changes of a run that passed can land"):
        project.approve(run.operations[0].diff, key=key(project))
