"""The harness in a container of its own, on the host's engine, as a user of the host."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.utils.build import exclude_paths

from harness.execution.image.lock import read_lock
from harness.execution.worker.strategy import SEEN, UNSEEN
from tests.e2e.person import Account, Person, person
from tests.e2e.project import only_operation
from tests.fakes.controller_image import DECOYS, ROOT, controller_context, controller_image
from tests.fakes.group_socket import open_to_its_group

ADA = Account(uid=61234, gid=61235)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOCKET = "/var/run/docker.sock"
ENGINE_TESTS = [pytest.mark.docker, pytest.mark.root, pytest.mark.timeout(300)]


def marked(test: Any) -> Any:
    for mark in ENGINE_TESTS:
        test = mark(test)
    return test


@dataclass(frozen=True, slots=True)
class Inside:
    """A container with the controller in it.

    Attributes:
        container: of the SDK.
        home: where the person's home is in it.
    """

    container: Any
    home: Path

    def __call__(self, *words: str) -> str:
        code, (out, err) = self.container.exec_run(["harness", *words], demux=True)
        assert code == 0, f"{words}: {code}\n{err.decode()}"
        return (out or b"").decode()


@pytest.fixture(scope="module")
def image(engine_url: str, images_lock: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    worker = read_lock(images_lock)["python"].image.image_id
    with controller_image(engine_url, worker, tmp_path_factory.mktemp("image")) as made:
        yield made


@pytest.fixture
def ada(engine_url: str, images_lock: Path) -> Iterator[Person]:
    with open_to_its_group(engine_url) as socket:
        group = socket.stat().st_gid
        account = Account(uid=ADA.uid, gid=ADA.gid, groups=(group,))
        with person(account, engine=f"unix://{socket}", images_lock=images_lock) as made:
            yield made


def start(ada: Person, image: str, home: Path) -> Any:
    """Start a container as `docs/how-to/who-may-run-it.md` says; ada's home lies at a path in it.

    ssh-keygen signs for users that it finds in a list only, so the container gets one.
    """
    listed = ada.home / "passwd"
    listed.write_text(f"ada:x:{ADA.uid}:{ADA.gid}::{home}:/bin/sh\n")
    client = docker.DockerClient(base_url=ada.engine, version="auto")
    socket = ada.engine.removeprefix("unix://")
    return client.containers.run(
        image,
        entrypoint=["sleep", "300"],
        detach=True,
        network_mode="none",
        read_only=True,
        user=f"{ADA.uid}:{ADA.gid}",
        group_add=[str(group) for group in ada.account.groups],
        volumes={
            socket: {"bind": SOCKET},
            str(ada.home): {"bind": str(home)},
            str(listed): {"bind": "/etc/passwd", "mode": "ro"},
        },
        environment={"HOME": str(home), "HARNESS_STATE": str(home / "s")},
        working_dir=str(home / "p"),
    )


@pytest.fixture
def inside(request: pytest.FixtureRequest, ada: Person, image: str) -> Iterator[Inside]:
    home = ada.home if request.param == "identical" else Path("/elsewhere")
    container = start(ada, image, home)
    try:
        yield Inside(container, home)
    finally:
        container.remove(force=True)
        container.client.close()


def run_inside(inside: Inside) -> dict[str, Any]:
    """Seal, approve and run a recipe in the container; return the run's one operation."""
    plan = json.loads(inside("seal", "few", "--json"))
    assert plan["requester"] == "ada"
    inside("approve", plan["plan"], "--key", str(inside.home / "keys" / "ada"))
    return only_operation(json.loads(inside("run", plan["plan"], "--json")))


@marked
@pytest.mark.parametrize("inside", ["identical"], indirect=True)
def test_the_main_job_with_the_state_at_the_identical_path(inside: Inside, ada: Person) -> None:
    """The host and the container see one state folder: what began here goes on there."""
    base = ada.tree()
    ran = run_inside(inside)
    assert ran["outcome"]["kind"] == "passed"
    assert (ran["workspace"], ran["workspaceReason"]) == ("overlay", SEEN)
    assert isinstance(ran["usage"]["cpu_ms"], int), "the engine's own figure"
    inside("approve", ran["diff"], "--key", str(inside.home / "keys" / "ada"))
    inside("apply", ran["diff"])
    assert (ada.project / "README.md").read_bytes() == b"# Changed\n"
    require_theirs(ada)

    undo = ada("undo", ran["diff"], "--json").json()["diff"]
    ada.approve(undo, "diff")
    ada("apply", undo)
    assert ada.tree() == base
    assert ada("ledger", "verify").out.startswith("ledger ok: ")


@marked
@pytest.mark.parametrize("inside", ["elsewhere"], indirect=True)
def test_with_the_state_at_another_path_files_are_copied(inside: Inside, ada: Person) -> None:
    ran = run_inside(inside)
    assert ran["outcome"]["kind"] == "passed"
    assert (ran["workspace"], ran["workspaceReason"]) == ("copy", UNSEEN)
    assert "README.md" in inside("diff", ran["diff"], "--stat")
    require_theirs(ada)


@marked
def test_whoever_does_not_say_who_they_are_is_nobody(ada: Person, image: str) -> None:
    client = docker.DockerClient(base_url=ada.engine, version="auto")
    try:
        assert client.images.get(image).attrs["Config"]["User"] == "65532:65532"
        out = client.containers.run(image, ["--version"], remove=True, network_mode="none")
        assert out.startswith(b"harness ")
    finally:
        client.close()


def test_only_what_the_package_needs_goes_to_the_engine(tmp_path: Path) -> None:
    context = controller_context(tmp_path / "context")
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    sent = exclude_paths(str(context), patterns)
    assert {"pyproject.toml", "README.md", "harness/__main__.py", "images/init/init.c"} <= sent
    assert not sent & set(DECOYS)
    assert not [path for path in sent if "__pycache__" in path]


@marked
def test_the_command_of_the_page_starts_it(ada: Person, image: str) -> None:
    page = (ROOT / "docs" / "how-to" / "who-may-run-it.md").read_text("utf-8")
    (command,) = (block for block in BLOCK.findall(page) if block.startswith("docker run "))
    socket = ada.engine.removeprefix("unix://")
    for place, text in ((f"{SOCKET}:", f"{socket}:"), (f"%g {SOCKET}", f"%g {socket}")):
        assert place in command
        command = command.replace(place, text, 1)
    groups = ",".join(str(group) for group in ada.account.groups)
    who = [f"--reuid={ADA.uid}", f"--regid={ADA.gid}", f"--groups={groups}"]
    done = subprocess.run(
        ["setpriv", *who, "sh", "-c", command.replace("sealed-harness runs", f"{image} runs")],
        cwd=ada.project,
        env=ada.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "no runs yet" in done.stderr
    require_theirs(ada)


def require_theirs(ada: Person) -> None:
    for place in ada.home.rglob("*"):
        found = place.lstat()
        if place.name != "passwd":
            assert (found.st_uid, found.st_gid) == (ADA.uid, ADA.gid), place
