"""What goes into running one operation, and what comes out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import HarnessError
from harness.execution.quarantine.compare import Gone
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.output import KEEP_BYTES, CapturedStream
from harness.execution.worker.sweep import state_id
from harness.model.image import Image
from harness.model.limits import Limits
from harness.model.outcome import Facts
from harness.model.recipe import Step, sealed_steps
from harness.model.seal import Seal
from harness.store.state import StateFolder

Strategy = Literal["overlay", "copy"]
"""How a worker gets its files: a layer over the snapshot's own, or a copy of them."""

StopReason = Literal["interrupt", "cancel"]


class StopRequest:
    """A request to end the run: by a signal handler or thread here, or a file from elsewhere."""

    def __init__(self) -> None:
        self._reason: StopReason | None = None
        self._file: Path | None = None

    def ask(self, reason: StopReason) -> None:
        """Ask the run to end; the first reason stays."""
        self._reason = self._reason or reason

    def watch(self, file: Path) -> None:
        """Take the existence of a file as a request to cancel, from now on."""
        self._file = file

    @property
    def reason(self) -> StopReason | None:
        """Return why the run is to end; None while it may go on."""
        if self._reason is None and self._file is not None and os.path.lexists(self._file):
            self._reason = "cancel"
        return self._reason


@dataclass(frozen=True, slots=True)
class Asked:
    """Which strategy was sealed.

    Attributes:
        strategy: `auto` leaves the choice to the host.
        by: who says so.
    """

    strategy: Literal["auto", "overlay", "copy"] = "auto"
    by: Literal["recipe", "policy"] = "recipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One sealed operation, and where it is to happen.

    Attributes:
        run: run id; in every name and label.
        state: id of the state folder, for the sweep.
        image: the sealed image.
        steps: what it runs, in order.
        env: the whole environment of a step.
        limits: what the worker gets.
        tmp_exec: whether programs in /tmp may be executed.
        snapshot: the files, in layers that the worker's user owns.
        asked: the workspace strategy that was sealed.
        probed: the file that remembers which engine was seen to lay an overlay here.
        folder: the run's folder, mode 0700; `workspace`, `stdout` and `stderr` are made in it.
        uid: numeric user whose the files are; the worker's too, where the engine takes it.
        gid: the same for the group.
        grace_ms: between SIGTERM and SIGKILL.
        keep_bytes: what is kept of each end of each stream.
    """

    run: str
    state: str
    image: Image
    steps: tuple[Step, ...]
    env: Mapping[str, str]
    limits: Limits
    tmp_exec: bool
    snapshot: SnapshotView
    asked: Asked
    probed: Path
    folder: Path
    uid: int
    gid: int
    grace_ms: int = 3000
    keep_bytes: int = KEEP_BYTES


def asked_strategy(seal: Seal) -> Asked:
    """Return the workspace strategy that a seal holds; a recipe can only narrow its policy's."""
    policy, recipe = seal.isolation["workspace"], seal.recipe["workspace"]
    return Asked(recipe, "recipe") if policy == "auto" else Asked(policy, "policy")


def operation_from_seal(
    seal: Seal,
    *,
    run: str,
    state: StateFolder,
    snapshot: SnapshotView,
    folder: Path,
    uid: int,
    gid: int,
) -> Operation:
    """Return the operation that a seal describes; nothing that is sealed comes from elsewhere.

    Args:
        seal: what would be executed.
        run: run id.
        state: the state folder.
        snapshot: the sealed files.
        folder: the operation's own, as in `Operation`.
        uid: numeric user whose the files are; the worker's too, where the engine takes it.
        gid: the same for the group.

    Raises:
        StateError: the state folder is not there.
    """
    return Operation(
        run=run,
        state=state_id(state.root),
        image=seal.image,
        steps=sealed_steps(seal.recipe),
        env=dict(seal.env),
        limits=Limits(**seal.isolation["limits"]),
        tmp_exec=bool(seal.isolation["tmpExec"]),
        snapshot=snapshot,
        asked=asked_strategy(seal),
        probed=state.root / "overlay-probe.json",
        folder=folder,
        uid=uid,
        gid=gid,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResult:
    """What running one operation left behind.

    Attributes:
        facts: for `classify_outcome`; the counts of a test report are the flow's to add.
        stdout: the payload's standard output, stored.
        stderr: its standard error, stored.
        observed: limits and identity as read back from the engine and the cgroup.
        usage: wall_ms, cpu_ms, memory_peak_bytes, pids_peak, oom_kills; or `unavailable`.
        workspace: strategy used.
        workspace_reason: why that one.
        workspace_folder: to be given to `remove_workspace` after the import.
        upper: the layer that the worker wrote, or what stands for it.
        gone: what the worker took away, where no layer could mark it; see `import_changes`.
        trouble: why what the worker left could not be brought here; None when it could.
        engine: version of the engine.
        live_missed: bytes that a slow onlooker did not get to see; the stored logs have them.
        problems: what went wrong beside the run, cleanup above all; none of it is a verdict.
    """

    facts: Facts
    stdout: CapturedStream
    stderr: CapturedStream
    observed: Mapping[str, Any]
    usage: Mapping[str, Any]
    workspace: Strategy
    workspace_reason: str
    workspace_folder: Path
    upper: Path
    gone: Gone
    trouble: HarnessError | None
    engine: str
    live_missed: int
    problems: tuple[str, ...]
