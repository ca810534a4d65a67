"""A rootless engine, started for real: what it can't limit is refused, what it maps comes home.

Its user has no control groups on a host that uses version 1, or that does not hand them out; there
the harness runs no worker, and says why. That the rest of the job works is shown all the same, by
an engine of the test that takes the limits for given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from tests.e2e.conftest import At
from tests.e2e.driver import ROOT, refused
from tests.e2e.project import run
from tests.fakes.bench import real_engine, real_image
from tests.fakes.rootless_engine import UID, RootlessEngine, init_of, load_busybox, rootless_engine

pytestmark = [pytest.mark.docker, pytest.mark.root]

AS_ITS_USER = """
import dataclasses, json, os, pathlib, sys
from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.spec import _worker_host_config
from harness.model.digest import parse_digest
from tests.e2e.somebody import import_all
from tests.fakes.bench import Bench

import_all()
url, image, folder, user = sys.argv[1], parse_digest(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.setgroups([])
os.setgid(user)
os.setuid(user)

class TakesLimitsForGiven(DockerImageEngine):
    def create_container(self, container):
        self.asked = _worker_host_config(container)
        self.users = (container.uid, container.gid)
        return super().create_container(container)

    def inspect(self, container):
        state = super().inspect(container)
        return state and dataclasses.replace(
            state, host_config={**state.host_config, **self.asked}
        )

engine = TakesLimitsForGiven(url)
bench = Bench(engine, image, pathlib.Path(folder), real=True)
script = "id -u; rm keep.txt; mkdir -p shut/in; echo new > shut/in/new; chmod 0 shut; umask"
ran = bench.run_operation(bench.operation(("/bin/busybox", "sh", "-c", script)))
left = {
    str(path.relative_to(ran.result.upper)): [path.lstat().st_uid, path.lstat().st_gid]
    for path in ran.result.upper.rglob("*")
}
print(json.dumps({
    "outcome": str(ran.outcome), "out": ran.out.decode(), "err": ran.err.decode(),
    "workspace": ran.result.workspace, "reason": ran.result.workspace_reason,
    "users": engine.users, "left": left, "gone": repr(ran.result.gone),
    "problems": ran.result.problems,
}))
bench.remove(ran)
"""


@pytest.fixture(scope="module")
def rootless() -> Iterator[RootlessEngine]:
    with rootless_engine() as engine:
        yield engine


def test_it_runs_workers_with_all_limits_or_none_and_says_so(
    rootless: RootlessEngine, at: At
) -> None:
    engine = DockerImageEngine(rootless.url)
    info = engine.info()
    engine.close()
    assert info.rootless
    bed = at("plan approved")
    if not info.missing_limits:
        found = bed("setup", "--check", DOCKER_HOST=rootless.url).out
        assert "it maps user ids, so files are copied to a worker and back" in found
        return
    for words in (("setup", "--check"), ("run", bed.facts["plan"])):
        says = "engine: the rootless engine can't limit memory"
        done = refused(bed, *words, code=6, says=says, DOCKER_HOST=rootless.url)
        assert "no worker runs without limits" in done.err
        assert "control groups version 2" in done.err or "let systemd hand" in done.err
    assert run(bed, bed.facts["plan"]), "the approval was not spent"


def test_what_a_mapped_worker_leaves_is_the_callers(rootless: RootlessEngine) -> None:
    own = real_engine()
    image = load_busybox(rootless.url, init_of(own.url, real_image()))
    own.close()
    folder = rootless.home / "bench"
    folder.mkdir(mode=0o700)
    os.chown(folder, UID, UID)
    done = subprocess.run(
        [sys.executable, "-c", AS_ITS_USER, rootless.url, image, folder, str(UID)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    said = json.loads(done.stdout)
    assert said["outcome"] == "passed", said
    assert (said["workspace"], said["reason"]) == ("copy", "the engine maps user ids")
    assert said["users"] == [65532, 65532]
    assert said["out"].split()[0] == "65532"
    assert said["left"] == {"shut": [UID, UID]}
    assert "keep.txt" in said["gone"]
    assert said["problems"] == []
