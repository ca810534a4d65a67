"""A container's standard streams over the engine's hijacked connection.

Each piece of output has an 8-byte header: stream number (1 stdout, 2 stderr), three zero bytes,
a big-endian u32 length (Docker Engine API, ContainerAttach). The SDK's own stream ends quietly
after 60 s of silence, so the socket is read here, with a deadline per call.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import socket
import ssl
import struct
import time
from typing import Literal

from harness.errors import EngineUnreachableError
from harness.execution.engine.port import Chunk, Pause
from harness.store.failpoints import pass_failpoint

_HEADER = struct.Struct(">BxxxI")
_READ_BYTES = 1 << 16
_NAMES: dict[int, Literal["stdout", "stderr"]] = {1: "stdout", 2: "stderr"}


_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class DockerConnection:
    """Implements `port.Connection`.

    Args:
        raw: the upgraded connection of the SDK, nothing read from it yet: a TLS socket, or what
            Python puts around a plain one.
        seconds: how long a send may take.
    """

    def __init__(self, raw: io.RawIOBase | ssl.SSLSocket, *, seconds: float) -> None:
        self._raw = raw
        self._socket = (
            raw if isinstance(raw, ssl.SSLSocket) else socket.socket(fileno=os.dup(raw.fileno()))
        )
        self._socket.setblocking(False)
        self._seconds = seconds
        self._rest = bytearray()
        self._ready: list[Chunk] = []
        self._ended = False

    def send(self, data: bytes) -> None:
        """Write to the container's stdin; see `port.Connection.send`."""
        pass_failpoint("engine.send")
        view, until = memoryview(data), time.monotonic() + self._seconds
        try:
            while view:
                left = until - time.monotonic()
                if left <= 0 or not select.select([], [self._socket], [], left)[1]:
                    raise EngineUnreachableError("engine: took no input in time")
                with contextlib.suppress(*_WAITS):
                    view = view[self._socket.send(view) :]
        except OSError as error:
            raise EngineUnreachableError(f"engine: input was cut: {error.strerror}") from error

    def receive(self, seconds: float) -> Chunk | Pause:
        """Return the next bytes; see `port.Connection.receive`."""
        until = time.monotonic() + seconds
        while not self._ready:
            left = max(until - time.monotonic(), 0)
            if self._ended:
                return Pause.END
            if not self._is_pending() and not select.select([self._socket], [], [], left)[0]:
                return Pause.SILENCE
            self._read()
        return self._ready.pop(0)

    def _is_pending(self) -> bool:
        """Tell whether the TLS layer holds bytes that the kernel no longer shows."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except _WAITS:
            return
        except OSError as error:
            raise EngineUnreachableError(f"engine: output was cut: {error.strerror}") from error
        if not data:
            self._ended = True
            if self._rest:
                raise EngineUnreachableError("engine: output was cut in the middle of a frame")
            return
        self._rest += data
        self._cut()

    def _cut(self) -> None:
        at = 0
        while len(self._rest) - at >= _HEADER.size:
            number, length = _HEADER.unpack_from(self._rest, at)
            if number not in _NAMES or length > 1 << 24:
                raise EngineUnreachableError("engine: output is not in the attach format")
            end = at + _HEADER.size + length
            if len(self._rest) < end:
                break
            if length:
                data = bytes(self._rest[at + _HEADER.size : end])
                self._ready.append(Chunk(stream=_NAMES[number], data=data))
            at = end
        del self._rest[:at]

    def close(self) -> None:
        """Close it, whoever else holds a copy of the descriptor."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        # The SDK keeps its HTTP response on the raw stream; unclosed it would hold the socket.
        with contextlib.suppress(OSError):
            response = getattr(self._raw, "_response", None)
            if response is not None:
                response.close()
            self._raw.close()
