"""The main job by whoever starts it: what comes of it is theirs, and nothing is left over.

Root, a listed user of the engine's group, users that no list of users has, users with ids as large
as the kernel gives; with several umasks.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.ids import MAX_ID, UNPRIVILEGED
from harness.execution.worker.strategy import TOO_LARGE
from harness.execution.worker.sweep import state_id
from tests.e2e.person import Account, Person, give, person
from tests.e2e.project import WRITABLE, only_operation, recipe, seal, write
from tests.fakes.group_socket import open_to_its_group

pytestmark = [pytest.mark.docker, pytest.mark.root]

ACCOUNTS = {
    "root, umask 077": Account(uid=0, gid=0, umask=0o077),
    "a listed user, umask 077": Account(uid=65534, gid=65534, umask=0o077),
    "an unlisted user, umask 000": Account(uid=61234, gid=61235, umask=0o000),
    "two thousand million, group 0": Account(uid=2_000_000_000, gid=0),
    "the largest id of an engine": Account(uid=MAX_ID, gid=MAX_ID),
    "the largest id of the kernel": Account(uid=2**32 - 2, gid=2**32 - 2, umask=0o077),
}

LEAVE = """\
import runpy
import sys
from pathlib import Path

sys.argv = ["tool.py", "few"]
runpy.run_path("tool.py")
Path("out").mkdir(mode=0o700)
Path("out/report.txt").write_text("for its owner only\\n")
Path("out/report.txt").chmod(0o400)
print("left a report")
"""
OUTPUTS = "outputs:\n  - { name: report, path: out/report.txt }\n"

LINGER = """\
import time
from pathlib import Path

Path("gone/old.txt").unlink()
print("begun", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def socket(engine_url: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    with open_to_its_group(engine_url) as path:
        yield path


@pytest.fixture(scope="module", params=ACCOUNTS)
def somebody(request: pytest.FixtureRequest, socket: Path, images_lock: Path) -> Iterator[Person]:
    listed = ACCOUNTS[request.param]
    account = Account(
        uid=listed.uid, gid=listed.gid, umask=listed.umask, groups=(socket.stat().st_gid,)
    )
    with person(account, engine=f"unix://{socket}", images_lock=images_lock) as made:
        for name, code, more in (("leave", LEAVE, WRITABLE + OUTPUTS), ("linger", LINGER, "")):
            text = recipe(name, more=more).replace(f"tool.py, {name}", f"{name}.py")
            write(made.project / f"{name}.py", code.encode())
            write(made.project / "recipes" / f"{name}.yaml", text.encode())
        give(made.project, account)
        yield made


def test_the_main_job_and_back_is_theirs(somebody: Person) -> None:
    base = _content(somebody)
    sealed = somebody("seal", "leave", "--json", LOGNAME="somebody-else").json()
    plan, account = sealed["plan"], somebody.account
    assert sealed["requester"] == {0: "root", 65534: "nobody"}.get(
        account.uid, f"uid-{account.uid}"
    )
    somebody.approve(plan, "plan")
    ran = only_operation(somebody("run", plan, "--json").json())
    assert ran["outcome"]["kind"] == "passed"
    assert ran["workspace"] == ("copy" if account.uid > MAX_ID else "overlay")
    assert (ran["workspaceReason"] == TOO_LARGE) == (account.uid > MAX_ID)
    somebody.approve(ran["diff"], "diff")
    somebody("apply", ran["diff"])
    report = somebody.home / "report"
    somebody("artifacts", "get", ran["run"], "report", "--output", str(report))
    assert report.read_bytes() == b"for its owner only\n"
    assert "left a report" in somebody("runs", "logs", ran["run"]).out
    assert (somebody.project / "README.md").read_bytes() == b"# Changed\n"
    _require_theirs(somebody)
    new, folder, tool = (somebody.project / name for name in ("deep/new.txt", "deep", "deep/tool"))
    umask = somebody.account.umask
    assert [_mode(place) for place in (new, folder, tool)] == [
        0o666 & ~umask,
        0o777 & ~umask,
        0o777 & ~umask,
    ]
    undo = somebody("undo", ran["diff"], "--json").json()["diff"]
    somebody.approve(undo, "diff")
    somebody("apply", undo)
    assert _content(somebody) == base


def test_what_a_killed_one_leaves_is_swept_by_the_next(somebody: Person, engine_url: str) -> None:
    """Also what the kernel made for root alone, below the folder that it works in."""
    plan = seal(somebody, "linger")
    somebody.approve(plan, "plan")
    killed = somebody.ask_in(somebody.environment, "run", plan, kill_at="begun")
    assert killed.code == -signal.SIGKILL
    engine = DockerImageEngine(engine_url)
    state = state_id(somebody.state)
    assert engine.owned(state).containers
    assert [*(somebody.state / "runs").iterdir()]
    assert "recorded as interrupted" in somebody("seal", "few").err
    assert [*(somebody.state / "runs").iterdir()] == []
    owned = engine.owned(state)
    engine.close()
    assert (owned.containers, owned.volumes) == ({}, {})
    assert somebody("ledger", "verify").out.startswith("ledger ok: ")
    _require_theirs(somebody)


def _content(somebody: Person) -> dict[str, tuple[str, int, bytes]]:
    """Return the project's files without the permissions that their umask decides."""
    return {
        path: (kind, mode & stat.S_IXUSR, data)
        for path, (kind, mode, _, data) in somebody.tree().items()
    }


def _require_theirs(somebody: Person) -> None:
    """Require that all in somebody's home is theirs to read, and nothing of the state others'."""
    account = somebody.account
    for place in somebody.home.rglob("*"):
        found = place.lstat()
        owner = (found.st_uid, found.st_gid)
        if account.uid == 0 and place.is_relative_to(somebody.state / "layers"):
            assert owner in ((0, 0), (UNPRIVILEGED, UNPRIVILEGED)), place
        else:
            assert owner == (account.uid, account.gid), place
        if not stat.S_ISLNK(found.st_mode):
            assert found.st_mode & stat.S_IRUSR, place
    assert _mode(somebody.state) == 0o700
    for place in somebody.state.iterdir():
        assert _mode(place) & 0o077 == 0, place


def _mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def test_outside_the_engines_group_nothing_is_spent(socket: Path, images_lock: Path) -> None:
    outsider = Account(uid=61238, gid=61238)
    with person(outsider, engine=f"unix://{socket}", images_lock=images_lock) as somebody:
        plan = seal(somebody)
        somebody.approve(plan, "plan")
        for words in (("setup", "--check"), ("run", plan)):
            done = somebody(*words, code=6)
            assert "this user may not use it" in done.err
            assert "ask an administrator to add you to the group" in done.err
        entries = somebody("ledger", "list", "--json").json()
        assert [entry["verb"] for entry in entries] == ["seal", "approve"]
