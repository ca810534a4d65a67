"""What goes into running one operation, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import SandboxUnavailableError
from harness.execution.worker.output import KEEP_BYTES, CapturedStream
from harness.model.image import Image
from harness.model.limits import Limits
from harness.model.outcome import Facts
from harness.model.seal import Seal

STRATEGIES = ("auto", "overlay")
"""The workspace strategies of a local engine; both mean the overlay."""

StopReason = Literal["interrupt", "cancel"]


class StopRequest:
    """A request to end the run; set by a signal handler or another thread, read by the run."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None

    def ask(self, reason: StopReason) -> None:
        """Ask the run to end; the first reason stays."""
        self.reason = self.reason or reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One sealed operation, and where it is to happen.

    Attributes:
        run: run id; in every name and label.
        state: id of the state folder, for the sweep.
        image: the sealed image.
        steps: argv of each step.
        env: the whole environment of a step.
        limits: what the worker gets.
        tmp_exec: whether programs in /tmp may be executed.
        layers: folders of the snapshot, top first, owned by the worker's user.
        folder: the run's folder, mode 0700; `workspace`, `stdout` and `stderr` are made in it.
        uid: the worker's numeric user.
        gid: the worker's numeric group.
        grace_ms: between SIGTERM and SIGKILL.
        keep_bytes: what is kept of each end of each stream.
    """

    run: str
    state: str
    image: Image
    steps: tuple[tuple[str, ...], ...]
    env: Mapping[str, str]
    limits: Limits
    tmp_exec: bool
    layers: tuple[Path, ...]
    folder: Path
    uid: int
    gid: int
    grace_ms: int = 3000
    keep_bytes: int = KEEP_BYTES


def operation_from_seal(  # noqa: D417 - the others are as in `Operation`
    seal: Seal,
    *,
    run: str,
    state: str,
    layers: tuple[Path, ...],
    folder: Path,
    uid: int,
    gid: int,
) -> Operation:
    """Return the operation that a seal describes; nothing that is sealed comes from elsewhere.

    Args:
        seal: what would be executed.

    Raises:
        SandboxUnavailableError: the seal asks for a workspace strategy that this host lacks.
    """
    for chosen in (seal.isolation["workspace"], seal.recipe["workspace"]):
        if chosen not in STRATEGIES:
            raise SandboxUnavailableError(
                f"workspace: expected one of {', '.join(STRATEGIES)}, got {chosen!r:.40}",
                hint="choose `workspace: auto` in the recipe and in its policy, then seal again",
            )
    return Operation(
        run=run,
        state=state,
        image=seal.image,
        steps=tuple(tuple(step["argv"]) for step in seal.recipe["steps"]),
        env=dict(seal.env),
        limits=Limits(**seal.isolation["limits"]),
        tmp_exec=bool(seal.isolation["tmpExec"]),
        layers=layers,
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
        workspace_folder: to be given to `remove_workspace` after the import.
        upper: the layer that the worker wrote.
        engine: version of the engine.
        live_missed: bytes that a slow onlooker did not get to see; the stored logs have them.
        problems: what went wrong beside the run, cleanup above all; none of it is a verdict.
    """

    facts: Facts
    stdout: CapturedStream
    stderr: CapturedStream
    observed: Mapping[str, Any]
    usage: Mapping[str, Any]
    workspace: str
    workspace_folder: Path
    upper: Path
    engine: str
    live_missed: int
    problems: tuple[str, ...]
