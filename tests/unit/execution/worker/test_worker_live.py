"""An onlooker sees what it can and holds nothing up."""

from __future__ import annotations

import threading
import time

from harness.execution.worker.live import LiveView


def test_pieces_come_in_their_order() -> None:
    seen: list[tuple[str, bytes]] = []
    view = LiveView(lambda stream, data: seen.append((stream, data)))
    for number in range(200):
        view.offer("stdout" if number % 2 else "stderr", b"%d" % number)
    view.close()
    assert [int(data) for _, data in seen] == list(range(200))
    assert view.missed == 0


def test_one_that_never_returns_is_not_waited_for() -> None:
    stuck = threading.Event()

    def wait(_stream: str, _data: bytes) -> None:
        stuck.wait(30)

    view = LiveView(wait)
    started = time.monotonic()
    for _ in range(400):
        view.offer("stdout", b"12345")
    assert time.monotonic() - started < 3
    assert view.missed >= 5 * 300
    stuck.set()
    view.close()


def test_one_that_fails_is_left_alone() -> None:
    calls: list[bytes] = []

    def broken(_stream: str, data: bytes) -> None:
        calls.append(data)
        raise ValueError("broken")

    view = LiveView(broken)
    view.offer("stdout", b"1")
    while not view.failed:
        time.sleep(0.001)
    view.offer("stdout", b"2")
    view.close()
    assert calls == [b"1"]


def test_nobody_looks_on() -> None:
    view = LiveView(None)
    view.offer("stdout", b"1")
    view.close()
    assert view.missed == 0
