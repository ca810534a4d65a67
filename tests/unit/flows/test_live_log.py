from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.errors import InputError, StateError
from harness.execution.worker.protocol import Frame
from harness.flows import live_log
from harness.flows.live_log import LiveLog, follow_live_log


def test_a_late_follower_sees_everything_from_the_beginning(tmp_path: Path) -> None:
    seen: list[tuple[str, bytes]] = []
    with LiveLog(tmp_path / "live", lambda stream, data: seen.append((stream, data))) as log:
        log.begin("test:py=3.11")
        log.show("stdout", b"out\n")
        log.show("stderr", b"err\n")
    assert seen == [("stdout", b"out\n"), ("stderr", b"err\n")]
    assert list(follow_live_log(tmp_path / "live", lambda: False)) == [
        Frame("S", b"test:py=3.11"),
        Frame("O", b"out\n"),
        Frame("E", b"err\n"),
    ]


def test_a_follower_waits_for_the_log_and_stays_until_the_writer_is_gone(tmp_path: Path) -> None:
    path, gone, found = tmp_path / "live", threading.Event(), list[Frame]()
    follower = threading.Thread(
        target=lambda: found.extend(follow_live_log(path, lambda: not gone.is_set()))
    )
    follower.start()
    with LiveLog(path, None) as log:
        log.show("stdout", b"one")
        while not found and follower.is_alive():
            pass
        log.show("stdout", b"two")
        path.unlink()  # as the end of a run does; the follower holds it open
    gone.set()
    follower.join(10)
    assert b"".join(frame.data for frame in found) == b"onetwo"


def test_there_is_nothing_to_follow_without_a_log_and_a_controller(tmp_path: Path) -> None:
    assert list(follow_live_log(tmp_path / "live", lambda: False)) == []


def test_the_log_is_bounded_and_says_where_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_log, "MAX_BYTES", 100)
    with LiveLog(tmp_path / "live", None) as log:
        for _ in range(50):
            log.show("stdout", b"x" * 30)
    assert (tmp_path / "live").stat().st_size < 200
    types = [frame.type for frame in follow_live_log(tmp_path / "live", lambda: False)]
    assert types == ["O", "O", "O", "T"]


def test_what_no_controller_wrote_is_refused(tmp_path: Path) -> None:
    (tmp_path / "live").write_bytes(b"Z\0\0\0\1x")
    with pytest.raises(InputError, match="frame: type b'Z'"):
        list(follow_live_log(tmp_path / "live", lambda: False))


def test_a_log_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StateError):
        LiveLog(tmp_path / "missing" / "live", None)
