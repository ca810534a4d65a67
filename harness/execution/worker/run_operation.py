"""Run one operation: one container from its volume to its removal.

Order: image, workspace, volume, create, compare, attach, start, ready, go, follow, read the
cgroup in the hold, end, wait. Whatever happens, container and volume are removed by id, each
call with a deadline; a failed removal is recorded and left to the sweep.

What fails before the start raises: nothing ran. What fails after it is a fact of the run.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError, SandboxUnavailableError, VerificationError
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    Connection,
    ContainerSpec,
    ContainerState,
    Engine,
    EngineInfo,
    VolumeSpec,
)
from harness.execution.engine.spec import check_read_back, observed_limits
from harness.execution.worker.cgroup import CgroupReading, read_cgroup
from harness.execution.worker.live import LiveView, Sink
from harness.execution.worker.operation import Operation, StopRequest, WorkerResult
from harness.execution.worker.output import OutputCapture
from harness.execution.worker.protocol import END, init_arguments
from harness.execution.worker.session import Session
from harness.execution.worker.watch import DiskWatch
from harness.execution.worker.workspace import Workspace, make_workspace, overlay_options
from harness.model.outcome import Facts

OUTER_MS = 60_000
"""How much longer init's own deadline is than the controller's wall clock and grace."""

HOLD_MS = 60_000
"""How long init waits for a controller that says nothing and takes nothing."""

END_SECONDS = 10.0


@dataclass(slots=True)
class _Made:
    """What exists on the engine and must go."""

    name: str
    volume: bool = False
    container: str = ""
    connection: Connection | None = None
    problems: list[str] = field(default_factory=list)


def run_operation(
    engine: Engine,
    operation: Operation,
    *,
    sink: Sink | None = None,
    stop: StopRequest | None = None,
) -> WorkerResult:
    """Run one operation in a disposable container and gather what happened.

    Args:
        engine: a local Linux engine.
        operation: what to run, where, and with which limits.
        sink: gets the output while it comes; a slow or failing one loses nothing stored.
        stop: a request to end, from a signal handler say.

    Raises:
        ImageMissingError: the sealed image is not there.
        VerificationError: the container was made from another image.
        SandboxUnavailableError: the engine refuses, or can't enforce a limit.
        EngineUnreachableError: nobody answers.
        StateError: little free space, or the run's folder can't be written.
    """
    info = _local_engine(engine)
    unset = _names_of(engine.image(operation.image.image_id).env)
    workspace = make_workspace(operation.folder / "workspace", uid=operation.uid, gid=operation.gid)
    made = _Made(name=f"harness-{operation.run}-{secrets.token_hex(4)}")
    spec = _container_spec(operation, made.name, unset)
    with (
        _captures(operation) as captures,
        DiskWatch(workspace.upper, operation.limits.workspace_bytes) as disk,
    ):
        live = LiveView(sink)
        try:
            state = _create(engine, operation, spec, workspace, made)
            session = _start(
                engine, operation, made, captures=captures, live=live, disk=disk, stop=stop
            )
            session.run()
            held = _look(engine, made)
            reading = read_cgroup(held.pid if held else 0, made.container)
            last = _end(engine, session, made)
        finally:
            live.close()
            _clean_up(engine, operation, made)
        if not session.stop_reason and disk.check() == "disk":
            session.stop_reason = "disk"
        return WorkerResult(
            facts=_facts(operation, session, reading, last),
            stdout=captures[0].finish(),
            stderr=captures[1].finish(),
            observed=_observed(info, state, reading),
            usage=_usage(session, reading),
            workspace="overlay",
            workspace_folder=workspace.folder,
            upper=workspace.upper,
            engine=info.version,
            live_missed=live.missed,
            problems=tuple(made.problems),
        )


def _local_engine(engine: Engine) -> EngineInfo:
    info = engine.info()
    if not info.local or info.os != "linux":
        raise SandboxUnavailableError(
            "workspace: the overlay strategy needs a Linux engine on this machine",
            hint="use an engine that is reached by a unix socket",
        )
    return info


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


def _create(
    engine: Engine,
    operation: Operation,
    spec: ContainerSpec,
    workspace: Workspace,
    made: _Made,
) -> ContainerState:
    """Make volume and container, and compare what was made with what was sealed."""
    options = overlay_options(operation.layers, workspace)
    made.volume = True
    engine.create_volume(VolumeSpec(name=made.name, options=options, labels=_labels(operation)))
    made.container = engine.create_container(spec)
    state = engine.inspect(made.container)
    if state is None:
        raise SandboxUnavailableError("engine: the container was gone right after it was made")
    if state.image_id != spec.image_id:
        raise VerificationError(f"image: expected {spec.image_id}, got {state.image_id}")
    check_read_back(spec, state.host_config)
    return state


def _start(
    engine: Engine,
    operation: Operation,
    made: _Made,
    *,
    captures: tuple[OutputCapture, OutputCapture],
    live: LiveView,
    disk: DiskWatch,
    stop: StopRequest | None,
) -> Session:
    made.connection = engine.attach(made.container)
    session = Session(
        made.connection,
        operation,
        captures=captures,
        live=live,
        disk=disk,
        stop=stop or StopRequest(),
    )
    engine.start(made.container)
    return session


def _look(engine: Engine, made: _Made) -> ContainerState | None:
    try:
        return engine.inspect(made.container)
    except HarnessError as error:
        made.problems.append(f"inspect: {error}")
        return None


def _end(engine: Engine, session: Session, made: _Made) -> ContainerState | None:
    """Let init leave its hold, or kill what does not hold; return the container's last state."""
    try:
        if session.finished and made.connection:
            made.connection.send(END)
        else:
            engine.kill(made.container)
        state = engine.wait(made.container, END_SECONDS)
    except HarnessError as error:
        made.problems.append(f"end: {error}")
        return _look(engine, made)
    if session.words:
        made.problems.append(session.words)
    return state


def _clean_up(engine: Engine, operation: Operation, made: _Made) -> None:
    """Remove all that was made; a failure is noted and left to the sweep."""
    if made.connection:
        made.connection.close()
    try:
        containers = [made.container] if made.container else _lost(engine, operation)
        for container in containers:
            engine.remove(container)
    except HarnessError as error:
        made.problems.append(f"cleanup: {error}")
    try:
        if made.volume:
            engine.remove_volume(made.name)
    except HarnessError as error:
        made.problems.append(f"cleanup: {error}")


def _lost(engine: Engine, operation: Operation) -> list[str]:
    """Return containers whose creation was cut: the engine made them and we never got the id."""
    owned = engine.owned(operation.state).containers
    return [container for container, run in owned.items() if run == operation.run]


def _facts(
    operation: Operation,
    session: Session,
    reading: CgroupReading,
    last: ContainerState | None,
) -> Facts:
    infra = session.infra
    if not session.finished and not session.stop_reason and not infra:
        if last is None or last.status == "removing":
            infra = "the container was removed from outside"
        else:
            infra = f"init ended with status {last.exit_code} before its report"
    oom_kills = reading.oom_kills
    return Facts(
        steps_planned=len(operation.steps),
        steps=tuple(session.steps),
        finished=session.finished,
        stop_reason=session.stop_reason,
        outer_deadline=session.outer_deadline,
        oom_kills=oom_kills if isinstance(oom_kills, int) else None,
        engine_oom=last.oom_killed if last else False,
        infra=infra,
    )


def _observed(info: EngineInfo, state: ContainerState, reading: CgroupReading) -> dict[str, Any]:
    return {
        **observed_limits(state.host_config),
        "imageId": state.image_id,
        "cgroupVersion": info.cgroup_version,
        "cgroupMemoryLimit": reading.memory_limit_bytes,
        "cgroupPidsLimit": reading.pids_limit,
        "securityOptions": list(info.security_options),
    }


def _usage(session: Session, reading: CgroupReading) -> dict[str, Any]:
    return {
        "wall_ms": session.wall_ms,
        "cpu_ms": reading.cpu_ms,
        "memory_peak_bytes": reading.memory_peak_bytes,
        "pids_peak": reading.pids_peak,
        "oom_kills": reading.oom_kills,
    }
