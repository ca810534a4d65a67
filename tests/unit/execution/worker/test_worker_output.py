"""Output capture: all counted and hashed, head and tail kept, every cut marked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import StateError
from harness.execution.worker.output import OutputCapture


@given(
    st.lists(st.binary(max_size=30), max_size=12),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_head_and_tail_are_kept_and_all_is_counted(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], head: int, tail: int
) -> None:
    path = tmp_path_factory.mktemp("out") / "log"
    capture = OutputCapture(path, head=head, tail=tail)
    for piece in pieces:
        capture.write(piece)
    record = capture.finish().record
    data, stored = b"".join(pieces), path.read_bytes()
    assert record.total_bytes == len(data)
    assert record.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert record.kept == "sha256:" + hashlib.sha256(stored).hexdigest()
    lost = max(len(data) - head - tail, 0)
    assert record.truncated == (lost > 0)
    if lost:
        mark = b"\n[... %d bytes not kept ...]\n" % lost
        assert stored == data[:head] + mark + data[len(data) - tail :]
        assert (record.head_bytes, record.tail_bytes) == (head, tail)
    else:
        assert stored == data
        assert (record.head_bytes, record.tail_bytes) == (len(data), 0)
    assert [item.name for item in path.parent.iterdir()] == ["log"]


def test_the_head_can_be_followed_while_the_run_goes_on(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "log", head=4, tail=4)
    capture.write(b"abcdef")
    assert (tmp_path / "log").read_bytes() == b"abcd"
    capture.close()
    capture.close()


def test_a_log_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old")
    with pytest.raises(StateError, match="make log"):
        OutputCapture(tmp_path / "log")
    assert [item.name for item in tmp_path.iterdir()] == ["log"]
    assert (tmp_path / "log").read_bytes() == b"old"
