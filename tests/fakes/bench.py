"""A bench that runs one scenario on the fake or on a real engine, and nothing else of the harness.

A scenario says the same thing twice: as Python source for a real worker, as events for the fake.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.port import Engine
from harness.execution.image.lock import read_lock
from harness.execution.snapshot.take import take_snapshot
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.live import Sink
from harness.execution.worker.operation import (
    Asked,
    Operation,
    StopRequest,
    WorkerResult,
)
from harness.execution.worker.run_operation import run_operation
from harness.execution.worker.workspace import remove_workspace
from harness.model.digest import Digest, parse_digest
from harness.model.image import Image
from harness.model.limits import MIB, Limits
from harness.model.outcome import Outcome, classify_outcome
from harness.model.recipe import PASSING, Step
from harness.model.seal import FIXED_ENV
from harness.store.state import open_state
from tests.fakes.engine import FAKE_IMAGE, Exit, FakeEngine, Program

SMALL = Limits(
    memory_bytes=256 * MIB,
    pids=64,
    tmp_bytes=16 * MIB,
    shm_bytes=16 * MIB,
    workspace_bytes=64 * MIB,
    output_bytes=64 * MIB,
    wall_ms=20_000,
)

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a payload does, as a step.

    Attributes:
        code: Python source, for a real worker.
        events: the same, for the fake.
        timeout_ms: of the step.
        allowed_exits: of the step.
    """

    code: str
    events: Program
    timeout_ms: int = 0
    allowed_exits: tuple[int, ...] = PASSING

    def step(self, number: int) -> Step:
        """Return it as a step of an operation."""
        return Step(
            name=f"scenario {number}",
            argv=("python3", "-c", self.code),
            timeout_ms=self.timeout_ms,
            allowed_exits=self.allowed_exits,
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run on the bench."""

    result: WorkerResult
    outcome: Outcome

    @property
    def out(self) -> bytes:
        return self.result.stdout.path.read_bytes()

    @property
    def err(self) -> bytes:
        return self.result.stderr.path.read_bytes()


class Bench:
    """Runs scenarios in folders of its own."""

    def __init__(self, engine: Engine, image: Digest, folder: Path, *, real: bool) -> None:
        self.engine, self.image, self.folder, self.real = engine, image, folder, real
        self.state = f"bench-{secrets.token_hex(8)}"
        self.uid = os.geteuid() or 65532
        self.gid = os.getegid() or 65532
        self.asked = Asked()

    def layer(self, files: Mapping[str, bytes]) -> Path:
        """Make a snapshot layer."""
        layer = self.folder / f"layer-{next(_numbers)}"
        layer.mkdir(mode=0o755)
        for name, data in files.items():
            path = layer / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for path in [layer, *layer.rglob("*")]:
            if self.real:
                os.chown(path, self.uid, self.gid)
        return layer

    def snapshot(self, files: Mapping[str, bytes]) -> SnapshotView:
        """Take a snapshot of a project with some files."""
        project = self.folder / f"project-{next(_numbers)}"
        for name, data in files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return self.take(project)

    def take(self, project: Path) -> SnapshotView:
        """Take a snapshot of a folder."""
        state = open_state(self.folder / "state")
        owner = (self.uid, self.gid) if self.real else (os.geteuid(), os.getegid())
        taken = take_snapshot(project, state=state, project="0" * 32, owner=owner)
        return SnapshotView(state, taken.digest)

    def operation(
        self,
        *steps: tuple[str, ...] | Step,
        limits: Limits = SMALL,
        files: Mapping[str, bytes] | None = None,
        asked: Asked | None = None,
    ) -> Operation:
        """Make an operation with a run folder of its own."""
        run = f"run-{next(_numbers)}-{secrets.token_hex(4)}"
        folder = self.folder / run
        folder.mkdir(mode=0o700)
        return Operation(
            run=run,
            state=self.state,
            image=Image(
                name="bench", image_id=self.image, platform="linux/amd64", definition=self.image
            ),
            steps=tuple(
                step if isinstance(step, Step) else Step(name=step[0], argv=step) for step in steps
            ),
            env=FIXED_ENV,
            limits=limits,
            tmp_exec=True,
            snapshot=self.snapshot(files or {"keep.txt": b"keep\n"}),
            asked=asked or self.asked,
            probed=self.folder / "probed",
            folder=folder,
            uid=self.uid if self.real else os.geteuid(),
            gid=self.gid if self.real else os.getegid(),
            grace_ms=300,
            keep_bytes=64 * 1024,
        )

    def run(
        self,
        *scenarios: Scenario,
        limits: Limits = SMALL,
        sink: Sink | None = None,
        stop: StopRequest | None = None,
        keep_bytes: int = 64 * 1024,
    ) -> Ran:
        """Run scenarios as the steps of one operation; check that nothing is left behind."""
        if isinstance(self.engine, FakeEngine):
            programs = {scenario.code: scenario.events for scenario in scenarios}
            self.engine.programs = lambda argv: programs.get(argv[-1], [Exit(127, 2)])
        steps = [scenario.step(number) for number, scenario in enumerate(scenarios, start=1)]
        operation = self.operation(*steps, limits=limits)
        return self.run_operation(
            dataclasses.replace(operation, keep_bytes=keep_bytes), sink=sink, stop=stop
        )

    def run_operation(
        self, operation: Operation, *, sink: Sink | None = None, stop: StopRequest | None = None
    ) -> Ran:
        """Run an operation; check that nothing is left behind."""
        result = run_operation(self.engine, operation, sink=sink, stop=stop)
        owned = self.engine.owned(self.state)
        assert operation.run not in {*owned.containers.values(), *owned.volumes.values()}
        return Ran(result, classify_outcome(result.facts))

    def remove(self, ran: Ran) -> None:
        """Remove a run's workspace."""
        folder = ran.result.workspace_folder
        remove_workspace(self.engine, folder, image_id=self.image, labels={})


def fake_bench(folder: Path) -> Bench:
    """Return a bench on the fake engine."""
    return Bench(FakeEngine(), FAKE_IMAGE, folder, real=False)


def real_engine() -> DockerImageEngine:
    """Return the engine at DOCKER_HOST or at the system's socket; skip when there is none."""
    url = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if url.startswith("unix://") and not Path(url.removeprefix("unix://")).exists():
        pytest.skip(f"no engine at {url}; set DOCKER_HOST")
    return DockerImageEngine(url)


def real_image() -> Digest:
    """Return the worker image: HARNESS_TEST_IMAGE, or `python` of images.lock in HARNESS_STATE.

    It needs Python 3 and our init; skip when there is none.
    """
    named = os.environ.get("HARNESS_TEST_IMAGE", "")
    if named:
        return parse_digest(named)
    state = os.environ.get("HARNESS_STATE", "")
    locked = read_lock(Path(state) / "images.lock") if state else {}
    if "python" not in locked:
        pytest.skip("no worker image; run `harness image build python` and set HARNESS_STATE")
    return locked["python"].image.image_id
