"""What init and the controller say to each other. Pure: bytes in, frames out.

A frame is one type byte, a big-endian u32 length, and that many bytes; the source of init
(`images/init/init.c`) is the other half of this page. Frames come from a program of ours inside
a container that may have been broken, so every one is checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from harness.errors import InputError
from harness.model.canonical import parse_json
from harness.model.outcome import StepReport
from harness.model.recipe import PASSING, Step

GO, TERM, KILL, END = b"go\n", b"term\n", b"kill\n", b"end\n"
"""The lines that init obeys."""

FrameType = Literal["R", "S", "O", "E", "X", "T", "F"]

EXIT_USAGE = 64
"""Init's exit status when it does not know one of its arguments: it is older than this page."""

MAX_PAYLOAD = 1 << 16
_HEADER = struct.Struct(">cI")
_MAX_NUMBER = 1 << 40
_MEMBERS = frozenset({"index", "exit", "signal", "execErrno", "durationMs"})


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of init's.

    Attributes:
        type: R ready, S step started, O and E payload output, X step ended, T outer deadline,
            F finished and holding.
        data: its payload.
    """

    type: FrameType
    data: bytes


class FrameReader:
    """Cuts a stream of bytes into frames; holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are whole now.

        Raises:
            InputError: an unknown type or a length beyond `MAX_PAYLOAD`.
        """
        self._rest += data
        at = 0
        try:
            while len(self._rest) - at >= _HEADER.size:
                kind, length = _HEADER.unpack_from(self._rest, at)
                if kind not in (b"R", b"S", b"O", b"E", b"X", b"T", b"F") or length > MAX_PAYLOAD:
                    raise InputError(f"frame: type {kind!r} with {length} bytes is not known")
                end = at + _HEADER.size + length
                if len(self._rest) < end:
                    return
                payload = bytes(self._rest[at + _HEADER.size : end])
                at = end
                yield Frame(cast("FrameType", kind.decode("ascii")), payload)
        finally:
            del self._rest[:at]


def encode_frame(frame: Frame) -> bytes:
    """Return a frame's bytes, as init writes them."""
    return _HEADER.pack(frame.type.encode("ascii"), len(frame.data)) + frame.data


def parse_step_report(data: bytes) -> StepReport:
    """Read the payload of an X frame.

    A step that reached its timeout has the member `timedOut` as well, which is `true`.

    Raises:
        InputError: not exactly these members, or not exactly one of exit and signal.
    """
    value = parse_json(data)
    timed_out = _takes_timed_out(value)
    if not isinstance(value, dict) or set(value) != _MEMBERS:
        raise InputError("step report: expected index, exit, signal, execErrno, durationMs")
    ended = {"exit", "signal"}
    for name in _MEMBERS:
        number = value[name]
        is_number = type(number) is int and 0 <= number < _MAX_NUMBER
        if not is_number and not (name in ended and number is None):
            raise InputError(f"step report: expected a number for {name}, got {number!r:.40}")
    if (value["exit"] is None) == (value["signal"] is None):
        raise InputError("step report: expected either an exit status or a signal")
    return StepReport(
        index=value["index"],
        exit=value["exit"],
        signal=value["signal"],
        exec_errno=value["execErrno"],
        duration_ms=value["durationMs"],
        timed_out=timed_out,
    )


def _takes_timed_out(value: Any) -> bool:
    """Take the member `timedOut` out of a report; tell whether it was there and true."""
    if not isinstance(value, dict) or "timedOut" not in value:
        return False
    if value.pop("timedOut") is not True:
        raise InputError("step report: expected timedOut to be true, or not there")
    return True


def init_arguments(
    steps: Sequence[Step], *, deadline_ms: int, grace_ms: int, hold_ms: int
) -> tuple[str, ...]:
    """Return init's arguments: `--step ARGC ARG...` keeps every argv exactly as it is.

    `--timeout-ms` and `--exits` are about the step after them, and are only there when it has
    them: an image whose init is older runs all other recipes as before.

    Args:
        steps: what to run, in order.
        deadline_ms: from `go`; the outer deadline, longer than the controller's own.
        grace_ms: between SIGTERM and SIGKILL.
        hold_ms: how long init waits for a silent controller.
    """
    head = ("--deadline-ms", str(deadline_ms), "--grace-ms", str(grace_ms))
    words = [*head, "--hold-ms", str(hold_ms)]
    for step in steps:
        if step.timeout_ms:
            words += ["--timeout-ms", str(step.timeout_ms)]
        if step.allowed_exits != PASSING:
            words += ["--exits", ",".join(map(str, step.allowed_exits))]
        words += ["--step", str(len(step.argv)), *step.argv]
    return tuple(words)
