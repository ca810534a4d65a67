"""Run one operation: one container from its volume to its removal.

Order: image, strategy, workspace, volume, create, compare, fill, attach, start, ready, go, follow,
read the cgroup in the hold, end, wait, collect. Whatever happens, what was made on the engine is
removed; a failed removal is recorded and left to the sweep.

What fails before the start raises: nothing ran. What fails after it is a fact of the run.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import HarnessError, SandboxUnavailableError, VerificationError
from harness.execution.engine.ids import worker_ids
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    ContainerSpec,
    ContainerState,
    Engine,
    EngineInfo,
)
from harness.execution.engine.spec import check_read_back, observed_limits
from harness.execution.worker.cgroup import UNAVAILABLE, CgroupReading, read_cgroup
from harness.execution.worker.live import LiveView, Sink
from harness.execution.worker.made import Made
from harness.execution.worker.operation import Operation, StopRequest, WorkerResult
from harness.execution.worker.output import OutputCapture
from harness.execution.worker.places import Collected, CopyPlace, OverlayPlace, Place
from harness.execution.worker.protocol import END, EXIT_USAGE, init_arguments
from harness.execution.worker.session import Session
from harness.execution.worker.strategy import Choice, choose_strategy
from harness.execution.worker.watch import DiskWatch
from harness.execution.worker.workspace import Workspace, make_workspace
from harness.model.outcome import Facts

OUTER_MS = 60_000
"""How much longer init's own deadline is than the controller's wall clock and grace."""

HOLD_MS = 60_000
"""How long init waits for a controller that says nothing and takes nothing."""

END_SECONDS = 10.0


def run_operation(
    engine: Engine,
    operation: Operation,
    *,
    sink: Sink | None = None,
    stop: StopRequest | None = None,
) -> WorkerResult:
    """Run one operation in a disposable container and gather what happened.

    Args:
        engine: where it runs.
        operation: what to run, where, and with which limits.
        sink: gets the output while it comes; a slow or failing one loses nothing stored.
        stop: a request to end, from a signal handler say.

    Raises:
        ImageMissingError: the sealed image is not there.
        VerificationError: the container was made from another image, or the snapshot is damaged.
        SandboxUnavailableError: the engine refuses, can't enforce a limit, or can't give the
            workspace that was sealed.
        EngineUnreachableError: nobody answers.
        StateError: little free space, or the run's folder can't be written.
    """
    job = _prepare(engine, operation)
    with _captures(operation) as captures:
        live = LiveView(sink)
        try:
            end = _perform(job, captures=captures, live=live, stop=stop or StopRequest())
        finally:
            live.close()
            job.made.remove()
        return WorkerResult(
            facts=_facts(operation, end),
            stdout=captures[0].finish(),
            stderr=captures[1].finish(),
            observed=_observed(job.info, end),
            usage=_usage(end.session, end.reading),
            workspace=job.choice.strategy,
            workspace_reason=job.choice.reason,
            workspace_folder=job.workspace.folder,
            upper=job.workspace.upper,
            gone=end.left.gone,
            trouble=end.left.trouble,
            engine=job.info.version,
            live_missed=live.missed,
            problems=tuple(job.made.problems),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """All that is decided before anything is made on the engine."""

    engine: Engine
    info: EngineInfo
    operation: Operation
    choice: Choice
    workspace: Workspace
    made: Made
    spec: ContainerSpec
    place: Place


def _prepare(engine: Engine, operation: Operation) -> _Job:
    """Look at engine and image, choose the strategy, and make our folders."""
    info = engine.info()
    unset = _names_of(engine.image(operation.image.image_id).env)
    choice = choose_strategy(engine, info, operation)
    workspace = make_workspace(operation.folder / "workspace", uid=operation.uid, gid=operation.gid)
    uid, gid = worker_ids(info, operation.uid, operation.gid)
    operation = replace(operation, uid=uid, gid=gid)
    made = Made(engine, f"harness-{operation.run}-{secrets.token_hex(4)}", _labels(operation))
    return _Job(
        engine=engine,
        info=info,
        operation=operation,
        choice=choice,
        workspace=workspace,
        made=made,
        spec=_container_spec(operation, made.name, unset),
        place=OverlayPlace(operation, workspace)
        if choice.strategy == "overlay"
        else CopyPlace(engine, operation, workspace, made),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """All that is known of a run when it has ended, its container's last state included."""

    state: ContainerState
    session: Session
    reading: CgroupReading
    last: ContainerState | None
    left: Collected
    disk: DiskWatch


def _perform(
    job: _Job,
    *,
    captures: tuple[OutputCapture, OutputCapture],
    live: LiveView,
    stop: StopRequest,
) -> _End:
    """Make the worker, let it run, and bring here what it left."""
    engine, made, place = job.engine, job.made, job.place
    state = _create(engine, job.spec, place, made)
    is_filled = place.fill(stop)
    made.connection, disk = engine.attach(state.container), place.watch()
    session = Session(
        made.connection, job.operation, captures=captures, live=live, disk=disk, stop=stop
    )
    reading, left = CgroupReading(), Collected()
    last: ContainerState | None = state
    if is_filled:
        reading, last = _run(engine, session, state.container, made, disk)
        left = place.collect(disk)
    session.stop_reason = session.stop_reason or _why(left, stop, is_filled=is_filled)
    return _End(state=state, session=session, reading=reading, last=last, left=left, disk=disk)


def _why(left: Collected, stop: StopRequest, *, is_filled: bool) -> str:
    """Return why a run ended that its session saw no reason to end."""
    if not is_filled:
        return stop.reason or ""
    return "disk" if left.over_limit else ""


def _names_of(env: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item.partition("=")[0] for item in env)


def _labels(operation: Operation) -> dict[str, str]:
    return {LABEL_RUN: operation.run, LABEL_STATE: operation.state}


def _container_spec(operation: Operation, name: str, unset: tuple[str, ...]) -> ContainerSpec:
    limits = operation.limits
    return ContainerSpec(
        name=name,
        image_id=operation.image.image_id,
        unset_env=unset,
        argv=init_arguments(
            operation.steps,
            deadline_ms=limits.wall_ms + operation.grace_ms + OUTER_MS,
            grace_ms=operation.grace_ms,
            hold_ms=HOLD_MS,
        ),
        env=operation.env,
        uid=operation.uid,
        gid=operation.gid,
        volume=name,
        limits=limits,
        tmp_exec=operation.tmp_exec,
        labels=_labels(operation),
    )


@contextlib.contextmanager
def _captures(operation: Operation) -> Iterator[tuple[OutputCapture, OutputCapture]]:
    keep = operation.keep_bytes
    with contextlib.ExitStack() as stack:
        stdout = OutputCapture(operation.folder / "stdout", head=keep, tail=keep)
        stack.callback(stdout.close)
        stderr = OutputCapture(operation.folder / "stderr", head=keep, tail=keep)
        stack.callback(stderr.close)
        yield stdout, stderr


def _create(engine: Engine, spec: ContainerSpec, place: Place, made: Made) -> ContainerState:
    """Make volume and container, and compare what was made with what was sealed."""
    made.volume(place.volume_options())
    container = made.container(lambda: engine.create_container(spec))
    state = engine.inspect(container)
    if state is None:
        raise SandboxUnavailableError("engine: the container was gone right after it was made")
    if state.image_id != spec.image_id:
        raise VerificationError(f"image: expected {spec.image_id}, got {state.image_id}")
    check_read_back(spec, state.host_config)
    return state


def _run(
    engine: Engine, session: Session, container: str, made: Made, disk: DiskWatch
) -> tuple[CgroupReading, ContainerState | None]:
    """Start the worker, hold the conversation, and return what was counted and its last state."""
    engine.start(container)
    with disk:
        session.run()
    held = _look(engine, container, made)
    reading = _read(engine, container, held)
    return reading, _end(engine, session, container, made)


def _look(engine: Engine, container: str, made: Made) -> ContainerState | None:
    try:
        return engine.inspect(container)
    except HarnessError as error:
        made.problems.append(f"inspect: {error}")
        return None


def _read(engine: Engine, container: str, held: ContainerState | None) -> CgroupReading:
    """Read the cgroup; where it is not on this host, ask the engine for what it counts."""
    reading = read_cgroup(held.pid if held else 0, container)
    if reading.cpu_ms != UNAVAILABLE or held is None or not held.running:
        return reading
    try:
        usage = engine.usage(container)
    except HarnessError:
        return reading
    return replace(
        reading,
        cpu_ms=UNAVAILABLE if usage.cpu_ms is None else usage.cpu_ms,
        memory_peak_bytes=usage.memory_peak_bytes or UNAVAILABLE,
    )


def _end(engine: Engine, session: Session, container: str, made: Made) -> ContainerState | None:
    """Let init leave its hold, or kill what does not hold; return the container's last state."""
    try:
        if session.finished and made.connection:
            made.connection.send(END)
        else:
            engine.kill(container)
        state = engine.wait(container, END_SECONDS)
    except HarnessError as error:
        made.problems.append(f"end: {error}")
        return _look(engine, container, made)
    if session.words:
        made.problems.append(session.words)
    return state


def _facts(operation: Operation, end: _End) -> Facts:
    session, last = end.session, end.last
    infra = session.infra
    if not session.finished and not session.stop_reason and not infra:
        if last is None or last.status == "removing":
            infra = "the container was removed from outside"
        elif last.exit_code == EXIT_USAGE:
            infra = "the image's init knows no step timeouts or exit codes: make the image again"
        else:
            infra = f"init ended with status {last.exit_code} before its report"
    oom_kills = end.reading.oom_kills
    return Facts(
        planned=operation.steps,
        steps=tuple(session.steps),
        finished=session.finished,
        stop_reason=session.stop_reason,
        outer_deadline=session.outer_deadline,
        oom_kills=oom_kills if isinstance(oom_kills, int) else None,
        engine_oom=last.oom_killed if last else False,
        infra=infra,
    )


def _observed(info: EngineInfo, end: _End) -> dict[str, Any]:
    reading, disk = end.reading, end.disk
    return {
        **observed_limits(end.state.host_config),
        "imageId": end.state.image_id,
        "cgroupVersion": info.cgroup_version,
        "cgroupMemoryLimit": reading.memory_limit_bytes,
        "cgroupPidsLimit": reading.pids_limit,
        "securityOptions": list(info.security_options),
        "workspaceWatch": UNAVAILABLE if disk.is_blind else disk.gauge.name,
    }


def _usage(session: Session, reading: CgroupReading) -> dict[str, Any]:
    return {
        "wall_ms": session.wall_ms,
        "cpu_ms": reading.cpu_ms,
        "memory_peak_bytes": reading.memory_peak_bytes,
        "pids_peak": reading.pids_peak,
        "oom_kills": reading.oom_kills,
    }
