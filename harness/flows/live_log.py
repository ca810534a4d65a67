"""The live log: a run's output while it goes on, for whoever follows it from another terminal.

It lies in the run's folder for as long as the run lasts, and is removed with it; the stored logs
are the record. Any number of followers read it, early or late, and none can hold up the run. It
ends at `MAX_BYTES`: a follower is told, and the stored logs go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.errors import StateError
from harness.execution.worker.live import LiveView, Sink, Stream
from harness.execution.worker.protocol import Frame, FrameReader, encode_frame
from harness.model.limits import MIB
from harness.store.durable import state_error, write_all

LIVE_FILE = "live"
MAX_BYTES = 256 * MIB

_READ = 1 << 16
_POLL_SECONDS = 0.1


class LiveLog:
    """Writes the live log, and hands the same pieces to an onlooker of this process.

    Args:
        path: the file to make.
        sink: the onlooker; None for nobody. A slow one misses pieces, the file does not.

    Raises:
        StateError: the file can't be made.
    """

    def __init__(self, path: Path, sink: Sink | None) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise state_error("make a live log", error) from error
        self._onlooker = LiveView(sink)
        self._left = MAX_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._onlooker.close()
        os.close(self._file)

    def begin(self, operation: str) -> None:
        """Say that the output from here on is of this operation."""
        self._append(Frame("S", operation.encode()))

    def show(self, stream: Stream, data: bytes) -> None:
        """Append one piece of output; it is a `Sink`."""
        self._append(Frame("O" if stream == "stdout" else "E", data))
        self._onlooker.offer(stream, data)

    def _append(self, frame: Frame) -> None:
        """Append a frame. A full disk is not the run's fault: followers miss it, nothing else."""
        if self._left <= 0:
            return
        self._left -= len(frame.data)
        if self._left <= 0:
            frame = Frame("T", b"")
        try:
            write_all(self._file, encode_frame(frame))
        except (OSError, StateError):
            self._left = 0


def follow_live_log(path: Path, is_alive: Callable[[], bool]) -> Iterator[Frame]:
    """Yield the frames of a live log from its beginning, and go on until its writer is gone.

    Args:
        path: the live log of a run.
        is_alive: tells whether the run's controller lives.

    Yields:
        S: an operation begins, by name; O and E: output; T: the log ends here, the run does not.

    Raises:
        StateError: it can't be read.
        InputError: it holds what no controller wrote.
    """
    try:
        descriptor = _open_when_there(path, is_alive)
        if descriptor is None:
            return
        try:
            yield from _frames(lambda: os.read(descriptor, _READ), is_alive)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise state_error("follow a run", error) from error


def _open_when_there(path: Path, is_alive: Callable[[], bool]) -> int | None:
    while True:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            if not is_alive():
                return None
            time.sleep(_POLL_SECONDS)


def _frames(read: Callable[[], bytes], is_alive: Callable[[], bool]) -> Iterator[Frame]:
    reader, last_look = FrameReader(), False
    while True:
        data = read()
        if data:
            yield from reader.feed(data)
        elif last_look:
            return
        elif is_alive():
            time.sleep(_POLL_SECONDS)
        else:
            last_look = True  # it may have written between our read and its end
