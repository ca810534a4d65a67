"""The hijacked connection: demultiplexed at any cut, with deadlines of its own."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterator
from typing import cast

import pytest

from harness.errors import EngineUnreachableError
from harness.execution.engine.docker_stream import DockerConnection
from harness.execution.engine.port import Chunk, Pause


def packed(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxI", stream, len(data)) + data


@pytest.fixture
def ends() -> Iterator[tuple[DockerConnection, socket.socket]]:
    ours, theirs = socket.socketpair()
    raw = cast("io.RawIOBase", ours.makefile("rwb", buffering=0))
    ours.close()
    connection = DockerConnection(raw, seconds=0.3)
    with theirs:
        yield connection, theirs
    connection.close()


def test_both_streams_are_told_apart(ends: tuple[DockerConnection, socket.socket]) -> None:
    connection, theirs = ends
    theirs.sendall(packed(1, b"out") + packed(2, b"err") + packed(1, b""))
    assert connection.receive(1) == Chunk(stream="stdout", data=b"out")
    assert connection.receive(1) == Chunk(stream="stderr", data=b"err")
    assert connection.receive(0.01) is Pause.SILENCE
    theirs.shutdown(socket.SHUT_WR)
    assert connection.receive(1) is Pause.END
    assert connection.receive(1) is Pause.END


def test_a_frame_cut_at_every_byte_is_put_together(
    ends: tuple[DockerConnection, socket.socket],
) -> None:
    connection, theirs = ends
    for byte in packed(1, b"hello")[:-1]:
        theirs.sendall(bytes([byte]))
        assert connection.receive(0.001) is Pause.SILENCE
    theirs.sendall(b"o")
    assert connection.receive(1) == Chunk(stream="stdout", data=b"hello")


def test_an_end_within_a_frame_is_a_lost_connection(
    ends: tuple[DockerConnection, socket.socket],
) -> None:
    connection, theirs = ends
    theirs.sendall(packed(1, b"hello")[:-2])
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(EngineUnreachableError, match="cut in the middle"):
        connection.receive(1)


@pytest.mark.parametrize("data", [packed(3, b"x"), b"HTTP/1.1 400 Bad Request\r\n"])
def test_what_is_not_the_attach_format_is_refused(
    ends: tuple[DockerConnection, socket.socket], data: bytes
) -> None:
    connection, theirs = ends
    theirs.sendall(data)
    with pytest.raises(EngineUnreachableError, match="not in the attach format"):
        connection.receive(1)


@pytest.mark.fault("L004")
def test_an_engine_that_takes_no_input_does_not_hang_us(
    ends: tuple[DockerConnection, socket.socket],
) -> None:
    connection, _ = ends
    with pytest.raises(EngineUnreachableError, match="took no input in time"):
        connection.send(b"x" * (8 << 20))


def test_input_arrives_and_closing_ends_it(ends: tuple[DockerConnection, socket.socket]) -> None:
    connection, theirs = ends
    connection.send(b"go\n")
    assert theirs.recv(10) == b"go\n"
    connection.close()
    assert theirs.recv(10) == b""
    connection.close()
