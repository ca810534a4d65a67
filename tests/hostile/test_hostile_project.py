"""A project that moves under our feet, and files in it that are not what they seem."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.driver import refused
from tests.hostile.conftest import Arena

pytestmark = pytest.mark.docker

SECRET = b"what only the host may see\n"
MANY = 200


@contextlib.contextmanager
def meanwhile(deed: Callable[[], None]) -> Iterator[None]:
    """Do something again and again, in a thread, while the block runs."""
    done = threading.Event()

    def again() -> None:
        while not done.is_set():
            with contextlib.suppress(OSError):
                deed()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def swap(folder: Path, outside: Path) -> Callable[[], None]:
    """Return what puts a link in a folder's place for a moment."""
    aside = folder.with_name(f".{folder.name}-aside")

    def deed() -> None:
        folder.rename(aside)
        folder.symlink_to(outside)
        folder.unlink()
        aside.rename(folder)

    return deed


def fill(folder: Path, data: bytes) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(MANY):
        (folder / f"f{number}").write_bytes(data)


def test_a_folder_swapped_for_a_link_while_it_is_sealed_lets_nothing_in(
    arena: Arena, tmp_path: Path
) -> None:
    fill(arena.project / "many", b"inside\n")
    fill(tmp_path / "outside", SECRET)
    (arena.project / "attack.py").write_text("print()\n")
    with meanwhile(swap(arena.project / "many", tmp_path / "outside")):
        codes = {arena.bed.ask("seal", "build").code for _ in range(6)}
    assert codes <= {0, 2}
    for path in (arena.bed.state).rglob("*"):
        assert not path.is_file() or SECRET not in path.read_bytes(), path


def test_a_folder_swapped_for_a_link_while_a_diff_lands_lets_nothing_out(
    arena: Arena, tmp_path: Path
) -> None:
    fill(arena.project / "many", b"old\n")
    outside = tmp_path / "outside"
    fill(outside, b"outside\n")
    many = f'for number in range({MANY}):\n    open(f"many/f{{number}}", "w").write("new")\n'
    left = arena.attack(many)
    arena.bed("approve", left.run["diff"], "--key", str(arena.bed.key("ada")))
    with meanwhile(swap(arena.project / "many", outside)):
        codes = [arena.bed.ask("apply", left.run["diff"]).code for _ in range(3)]
    assert set(codes) <= {0, 3, 4, 5, 6}
    assert {path.read_bytes() for path in outside.iterdir()} == {b"outside\n"}
    assert len(list(outside.iterdir())) == MANY
    arena.bed.ask("apply", left.run["diff"])
    arena.bed.ledger.verify()
    held = {path.read_bytes() for path in (arena.project / "many").iterdir()}
    assert held in ({b"old\n"}, {b"new"})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_never_leaves_half_a_diff(arena: Arena, number: signal.Signals) -> None:
    """Whole or not at all at once, not only after the next command has settled it."""
    fill(arena.project / "many", b"old\n")
    many = f'for number in range({MANY}):\n    open(f"many/f{{number}}", "w").write("new")\n'
    left = arena.attack(many)
    bed, diff = arena.bed, left.run["diff"]
    bed("approve", diff, "--key", str(bed.key("ada")))
    bed.keep(f"approved {number.name}")
    codes = set()
    # It passes three times 2 * MANY points: files set aside, then landed, then cleared away.
    for passed in (1, MANY, 2 * MANY + 50, 3 * MANY, 5 * MANY):
        bed.come_back(f"approved {number.name}")
        log = bed.home / f"points {number.name} {passed}"
        process = bed.start("apply", diff, HARNESS_FAILPOINT_LOG=str(log))
        while process.poll() is None and (not log.exists() or _lines(log) < passed):
            time.sleep(0.005)
        process.send_signal(number)
        process.communicate(timeout=60)
        codes.add(process.returncode)
        held = {path.read_bytes() for path in (arena.project / "many").iterdir()}
        assert held in ({b"old\n"}, {b"new"}), (passed, process.returncode)
    assert codes <= {0, 130}


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


@pytest.mark.parametrize("name", ["policies/default.yaml", "policies/reviewers", "harness.yaml"])
@pytest.mark.parametrize("kind", ["fifo", "device", "endless"])
def test_a_file_of_ours_that_is_no_file_holds_nobody(arena: Arena, name: str, kind: str) -> None:
    path = arena.project / name
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as stream:
            stream.truncate(1 << 26)
    refused(arena.bed, "seal", "build", code=2, says=name)
