"""Interrupted, killed, and two at once: the ledger says so and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.worker.sweep import state_id
from tests.e2e.conftest import At
from tests.e2e.driver import SECONDS, Bed, refused, untouched
from tests.e2e.project import approve, seal

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(engine_url: str) -> Iterator[DockerImageEngine]:
    engine = DockerImageEngine(engine_url)
    yield engine
    engine.close()


def begin_slow(bed: Bed) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a run that sleeps for a minute, and wait until its program has begun."""
    plan = seal(bed, "slow")
    approve(bed, plan)
    process = bed.start("run", plan)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return plan, process


def end_of(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.decode(), err.decode()


def require_nothing_left(bed: Bed, engine: DockerImageEngine) -> None:
    owned = engine.owned(state_id(bed.state))
    assert (owned.containers, owned.volumes) == ({}, {})
    assert list((bed.state / "runs").iterdir()) == []
    bed.ledger.verify()


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "cancelled")]
)
def test_a_signal_ends_the_run_and_everything_is_put_away(
    bed: Bed, engine: DockerImageEngine, number: signal.Signals, kind: str
) -> None:
    with untouched(bed):
        plan, process = begin_slow(bed)
        assert engine.owned(state_id(bed.state)).containers
        process.send_signal(number)
        code, out, err = end_of(process)
        assert code == 130
        assert f": {kind}" in out
        assert "stopping; once more to leave at once" in err
        require_nothing_left(bed, engine)
    (run,) = bed("runs", "list", "--json").json()
    assert run["kind"] == kind
    assert bed("runs", "logs", run["run"]).out == "begun\n"
    refused(bed, "run", plan, code=4, says="spent already")


def test_a_second_signal_leaves_at_once_and_the_next_command_settles(
    bed: Bed, engine: DockerImageEngine
) -> None:
    _, process = begin_slow(bed)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert b"once more" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    code, _, _ = end_of(process)
    assert code == 130
    bed("seal", "few")
    (run,) = bed("runs", "list", "--json").json()
    assert run["kind"] == "interrupted"
    require_nothing_left(bed, engine)


def test_a_killed_controller_is_recorded_and_swept_by_the_next_command(
    bed: Bed, engine: DockerImageEngine
) -> None:
    with untouched(bed):
        plan, process = begin_slow(bed)
        process.kill()
        process.communicate(timeout=SECONDS)
        settled = bed("seal", "few")
        assert "its controller died; recorded as interrupted" in settled.err
        require_nothing_left(bed, engine)
    (run,) = bed("runs", "list", "--json").json()
    assert run["outcome"] == "interrupted(its controller died)"
    assert "it left no record" in bed("runs", "show", run["run"]).out
    refused(bed, "run", plan, code=4, says="spent already")
    assert bed("seal", "few").err == "", "it is said once"


def test_a_killed_controller_is_not_forgotten_while_no_engine_answers(
    bed: Bed, engine: DockerImageEngine
) -> None:
    _, process = begin_slow(bed)
    process.kill()
    process.communicate(timeout=SECONDS)
    told = bed("seal", "few", DOCKER_HOST="unix:///nonexistent/docker.sock").err
    assert "recorded as interrupted" in told
    assert "left over: " in told
    bed("seal", "few")
    require_nothing_left(bed, engine)


def test_a_living_run_is_left_alone_by_other_commands(bed: Bed, engine: DockerImageEngine) -> None:
    _, process = begin_slow(bed)
    assert bed("seal", "few").err == ""
    assert len(engine.owned(state_id(bed.state)).containers) == 1
    (run,) = bed("runs", "list", "--json").json()
    assert run["kind"] == "running"
    process.send_signal(signal.SIGINT)
    assert end_of(process)[0] == 130
    require_nothing_left(bed, engine)


def test_two_controllers_on_one_project_do_not_get_in_each_others_way(
    bed: Bed, engine: DockerImageEngine
) -> None:
    plans = [seal(bed, "few"), seal(bed, "nothing")]
    for plan in plans:
        approve(bed, plan)
    with untouched(bed):
        running = [bed.start("run", plan, "--quiet") for plan in plans]
        ends = [end_of(process) for process in running]
        assert [code for code, _, _ in ends] == [0, 0], ends
        require_nothing_left(bed, engine)
    listed = bed("runs", "list", "--json").json()
    assert sorted(run["operations"][0]["changes"] for run in listed) == [0, 6]


def test_a_grant_is_spent_once_however_many_ask_at_once(at: At, engine: DockerImageEngine) -> None:
    bed = at("plan approved")
    running = [bed.start("run", bed.facts["plan"], "--quiet") for _ in range(3)]
    codes = sorted(end_of(process)[0] for process in running)
    assert codes[0] == 0
    assert set(codes[1:]) <= {4, 6}, "refused: spent, or held by the other"
    assert bed.verbs().count("run.intent") == 1
    bed("seal", "few")
    require_nothing_left(bed, engine)


def test_a_diff_lands_once_however_many_ask_at_once(at: At) -> None:
    bed = at("diff approved")
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(bed.ask("apply", bed.facts["diff"]).code))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(codes) == 0
    assert 70 not in codes
    assert codes.count(0) == 1
    assert bed.verbs().count("apply.done") == 1
    assert (bed.project / "deep" / "new.txt").read_text() == "new\n"
    bed("undo", bed.facts["diff"])
    bed.ledger.verify()
