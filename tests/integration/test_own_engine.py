"""An engine of our own on this host: it starts, answers, survives us, stops, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError, SandboxUnavailableError
from harness.execution.host.daemon import (
    own_run_folder,
    own_socket,
    remove_own_engine,
    start_own_engine,
    stop_own_engine,
)
from harness.execution.host.find import find_engine
from harness.execution.host.mounts import mounts_below
from harness.execution.host.packages import (
    install_argv,
    installed,
    parse_added,
    parse_removed,
    purge_argv,
    simulate,
)
from harness.execution.host.ping import ping
from harness.execution.host.setup import SetupContext, gather_facts, plan_setup, undo_setup
from harness.store.state import StateFolder, open_state

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.timeout(180)]


def processes_of(state: StateFolder) -> list[str]:
    marks = (str(own_run_folder(state)), str(state.engine))
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(mark in line for mark in marks):
            found.append(line)
    return found


def assert_nothing_is_left(state: StateFolder) -> None:
    assert processes_of(state) == []
    assert not own_run_folder(state).exists()
    assert mounts_below(state.root) == ()
    assert mounts_below(own_run_folder(state)) == ()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    state = open_state(tmp_path / "state")
    yield state
    remove_own_engine(state, environment=os.environ)


def start(state: StateFolder) -> str:
    return start_own_engine(state, environment=os.environ, report=lambda _: None)


def test_it_starts_answers_stops_and_leaves_nothing(state: StateFolder) -> None:
    url = start(state)
    assert ping(url).answer == "answers"
    assert own_run_folder(state).stat().st_mode & 0o777 == 0o700
    assert stop_own_engine(state, environment=os.environ)
    assert_nothing_is_left(state)
    assert (state.engine / "data").is_dir()
    assert not stop_own_engine(state, environment=os.environ)


@pytest.mark.alone
def test_a_second_setup_has_nothing_to_do_and_is_quick(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = start(state)
    before = processes_of(state)
    begun = time.monotonic()
    plan = plan_setup(gather_facts({"DOCKER_HOST": url}, state, uid=0))
    assert (plan, time.monotonic() - begun < 0.5) == ((), True)
    assert start(state) == url
    assert processes_of(state) == before


def test_it_survives_the_command_that_started_it(state: StateFolder) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from harness.store.state import open_state\n"
        "from harness.execution.host.daemon import start_own_engine\n"
        "start_own_engine(open_state(Path(sys.argv[1])), environment=os.environ, report=print)\n"
    )
    subprocess.run([sys.executable, "-c", code, state.root], check=True, start_new_session=True)
    assert ping(f"unix://{own_socket(state)}").answer == "answers"


def test_undo_takes_it_back_with_its_data(state: StateFolder) -> None:
    start(state)
    context = SetupContext(
        state=state, environment=os.environ, report=lambda _: None, consent=lambda _: False
    )
    assert undo_setup(context) == ("our own engine, with its images and containers",)
    assert_nothing_is_left(state)
    assert not state.engine.exists()
    with pytest.raises(EngineUnreachableError):
        find_engine({"DOCKER_HOST": f"unix://{own_socket(state)}"}, state)


def test_one_that_was_killed_is_cleared_at_the_next_start(state: StateFolder) -> None:
    start(state)
    pid = int((own_run_folder(state) / "docker.pid").read_text())
    os.kill(pid, 9)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
    assert ping(start(state)).answer == "answers"


def test_one_that_can_not_start_names_its_log(state: StateFolder) -> None:
    state.engine.mkdir()
    (state.engine / "data").write_text("not a folder")
    with pytest.raises(SandboxUnavailableError, match="our own dockerd ended at once") as caught:
        start(state)
    assert str(state.engine / "dockerd.log") in caught.value.hint
    assert processes_of(state) == []


def test_an_engine_of_somebody_else_is_not_touched(state: StateFolder, tmp_path: Path) -> None:
    other = open_state(tmp_path / "other")
    try:
        url = start(other)
        start(state)
        stop_own_engine(state, environment=os.environ)
        assert ping(url).answer == "answers"
    finally:
        remove_own_engine(other, environment=os.environ)
    assert_nothing_is_left(other)


def test_apt_says_what_an_installation_adds_and_an_undo_removes(state: StateFolder) -> None:
    there = installed(os.environ)
    assert "dpkg" in there
    added = parse_added(simulate(install_argv(("docker.io", "debootstrap")), os.environ))
    assert not set(added) & there
    if "docker.io" in there:
        assert "docker.io" in parse_removed(simulate(purge_argv(("docker.io",)), os.environ))
    else:
        assert {"docker.io", "containerd", "runc"} <= set(added)
