"""The container of a build: no network, one deadline, nothing left behind.

A state folder has one at a time, whoever makes it; the callers hold the lock of builds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from harness.errors import HarnessError, SandboxUnavailableError
from harness.execution.engine.port import BuildSpec, Connection, ImageEngine, Pause
from harness.model.digest import Digest, digest_of, short
from harness.model.seal import FIXED_ENV
from harness.store.durable import state_error
from harness.store.state import StateFolder

LABEL_BUILD = "harness.build"
POLL_SECONDS = 1.0
END_SECONDS = 30


def run_offline(
    engine: ImageEngine,
    image_id: Digest,
    argv: tuple[str, ...],
    *,
    what: str,
    state: StateFolder,
    log: Path,
    seconds: float,
    bring: Path | None = None,
    fetch: tuple[str, int] | None = None,
    expect: int = 0,
) -> bytes:
    """Run a program of an image to its end.

    Args:
        engine: runs it.
        image_id: of the image.
        argv: program and arguments.
        what: what it does, for messages.
        state: of this host; a container of an earlier, killed build on it is removed first.
        log: takes the program's output.
        seconds: how long it may take.
        bring: a tar archive that is unpacked at / before the start.
        fetch: a path to bring back as a tar archive, and the most bytes of it.
        expect: the exit status that means success.

    Returns:
        The archive, or nothing where none was asked for.

    Raises:
        SandboxUnavailableError: it can't run, fails, is too slow, or the path is not there.
        StateError: the log can't be written.
    """
    with _container(engine, image_id, argv, state) as container:
        try:
            if bring:
                with bring.open("rb") as tar:
                    engine.copy_in(container, "/", tar)
        except OSError as error:
            raise state_error("read the build's archive", error) from error
        status = _run(engine, container, what, log, seconds)
        if status != expect:
            raise SandboxUnavailableError(
                f"{what}: expected exit {expect}, got {status}", hint=f"its output is in {log}"
            )
        return engine.copy_out(container, fetch[0], limit=fetch[1]) if fetch else b""


def look_inside(
    engine: ImageEngine, image_id: Digest, path: str, *, limit: int, state: StateFolder
) -> bytes:
    """Return what an image has at a path, as a tar archive; nothing of it is started.

    Args:
        engine: has the image.
        image_id: of the image.
        path: from its root.
        limit: most bytes of the archive.
        state: of this host; the caller holds its lock of builds.

    Raises:
        ImageMissingError: the image is not there.
        SandboxUnavailableError: no such path, or a larger archive.
    """
    with _container(engine, image_id, ("/",), state) as container:
        return engine.copy_out(container, f"/{path}", limit=limit)


@contextlib.contextmanager
def _container(
    engine: ImageEngine, image_id: Digest, argv: tuple[str, ...], state: StateFolder
) -> Iterator[str]:
    """Give the one build container of a state folder for the block."""
    key = short(digest_of(str(state.root).encode("utf-8", "surrogateescape")))
    name = f"harness-build-{key}"
    engine.remove(name)
    container = engine.create_build_container(
        BuildSpec(
            name=name,
            image_id=image_id,
            argv=argv,
            env={**FIXED_ENV, "HOME": "/tmp"},  # noqa: S108 - inside the container
            labels={LABEL_BUILD: key},
        )
    )
    try:
        yield container
    finally:
        with contextlib.suppress(HarnessError):
            engine.remove(container)


def _run(engine: ImageEngine, container: str, what: str, log: Path, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    connection = engine.attach(container)
    try:
        engine.start(container)
        _copy_output(connection, log, what, deadline)
    finally:
        connection.close()
    ended = engine.wait(container, END_SECONDS)
    if ended is None or ended.running:
        raise SandboxUnavailableError(f"{what}: its container was lost or does not end")
    return ended.exit_code


def _copy_output(connection: Connection, log: Path, what: str, deadline: float) -> None:
    with log.open("ab") as stream:
        stream.write(f"$ {what}\n".encode())
        while (found := connection.receive(POLL_SECONDS)) is not Pause.END:
            if time.monotonic() >= deadline:
                raise SandboxUnavailableError(
                    f"{what}: is too slow", hint=f"its output is in {log}"
                )
            if not isinstance(found, Pause):
                stream.write(found.data)
