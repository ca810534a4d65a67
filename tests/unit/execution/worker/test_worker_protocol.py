"""Init's frames: cut anywhere, checked everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, InputError
from harness.execution.worker.protocol import (
    MAX_PAYLOAD,
    Frame,
    FrameReader,
    encode_frame,
    init_arguments,
    parse_step_report,
)
from harness.model.recipe import Step

FRAMES = st.builds(
    Frame, st.sampled_from(["R", "S", "O", "E", "X", "T", "F"]), st.binary(max_size=40)
)


@given(st.lists(FRAMES), st.integers(1, 9))
def test_frames_survive_any_cut(frames: list[Frame], size: int) -> None:
    data = b"".join(map(encode_frame, frames))
    reader = FrameReader()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        list(FrameReader().feed(data))
    except HarnessError as error:
        assert isinstance(error, InputError)  # noqa: PT017 - any other class is the failure


def test_a_frame_of_the_largest_size_is_read_and_one_beyond_is_refused() -> None:
    frame = Frame("O", b"x" * MAX_PAYLOAD)
    assert list(FrameReader().feed(encode_frame(frame))) == [frame]
    with pytest.raises(InputError, match="65537 bytes is not known"):
        list(FrameReader().feed(b"O" + (MAX_PAYLOAD + 1).to_bytes(4, "big")))


def test_frames_before_a_bad_one_are_not_lost() -> None:
    reader = FrameReader().feed(b"R\0\0\0\0?\0\0\0\0")
    assert next(reader) == Frame("R", b"")
    with pytest.raises(InputError):
        next(reader)


def test_a_step_report_is_read() -> None:
    data = b'{"index":1,"exit":null,"signal":9,"execErrno":0,"durationMs":12}'
    report = parse_step_report(data)
    assert (report.index, report.exit, report.signal, report.duration_ms) == (1, None, 9, 12)


def test_a_step_that_reached_its_timeout_says_so() -> None:
    late = b'{"index":1,"exit":null,"signal":15,"execErrno":0,"durationMs":1,"timedOut":true}'
    assert parse_step_report(late).timed_out
    assert not parse_step_report(late.replace(b',"timedOut":true', b"")).timed_out


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"index":1}',
        b'{"index":1,"exit":0,"signal":9,"execErrno":0,"durationMs":1}',
        b'{"index":1,"exit":null,"signal":null,"execErrno":0,"durationMs":1}',
        b'{"index":1,"exit":true,"signal":null,"execErrno":0,"durationMs":1}',
        b'{"index":-1,"exit":0,"signal":null,"execErrno":0,"durationMs":1}',
        b'{"index":null,"exit":0,"signal":null,"execErrno":0,"durationMs":1}',
        b'{"index":1,"exit":0,"signal":null,"execErrno":0,"durationMs":1,"more":1}',
        b'{"index":1,"exit":0,"signal":null,"execErrno":0,"durationMs":1e3}',
        b'{"index":1,"exit":0,"signal":null,"execErrno":0,"durationMs":1,"timedOut":false}',
        b'{"index":1,"exit":0,"signal":null,"execErrno":0,"durationMs":1,"timedOut":1}',
    ],
)
def test_any_other_step_report_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        parse_step_report(data)


def test_every_argv_reaches_init_as_it_is() -> None:
    steps = [Step(name="", argv=argv) for argv in (("a", "--step"), ("b",))]
    words = init_arguments(steps, deadline_ms=1, grace_ms=2, hold_ms=3)
    assert words[6:] == ("--step", "2", "a", "--step", "--step", "1", "b")


def test_what_a_step_has_of_its_own_stands_before_it() -> None:
    steps = [
        Step(name="", argv=("a",), timeout_ms=5000, allowed_exits=(0, 5)),
        Step(name="", argv=("b",), allowed_exits=(1,)),
        Step(name="", argv=("c",), timeout_ms=100),
    ]
    words = init_arguments(steps, deadline_ms=1, grace_ms=2, hold_ms=3)
    assert " ".join(words[6:]) == (
        "--timeout-ms 5000 --exits 0,5 --step 1 a --exits 1 --step 1 b --timeout-ms 100 --step 1 c"
    )
