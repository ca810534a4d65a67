"""The ledger under several real processes, kills and a full disk."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import LedgerBrokenError
from harness.ledger.key_folder import KeyFolder
from harness.ledger.log import Ledger

PROGRAM = """
import sys
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import StateError
from harness.ledger.key_folder import KeyFolder
from harness.ledger.log import Ledger

root, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
keys = KeyFolder(root / "host")
keys.make_first()
ledger = Ledger(root / "ledger", keys, now=lambda: datetime.now(UTC))
try:
    for number in range(count):
        body = {"who": who, "number": number, "filler": "x" * int(sys.argv[4])}
        ledger.append("seal", "done", project="p", body=body)
except StateError as error:
    sys.exit(f"StateError: {error}")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("host", "ledger"):
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path


def start(
    root: Path, who: str, count: int, *, filler: int = 0, failpoint: str = "", log: str = ""
) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "HARNESS_FAILPOINT_KILL": failpoint,
        "HARNESS_FAILPOINT_LOG": log,
    }
    arguments = [sys.executable, "-c", PROGRAM, str(root), who, str(count), str(filler)]
    return subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, text = process.communicate(timeout=60)
    return process.returncode, text.decode()


def open_ledger(root: Path) -> Ledger:
    return Ledger(root / "ledger", KeyFolder(root / "host"), now=lambda: datetime.now(UTC))


def told(root: Path) -> list[tuple[str, int]]:
    return [(entry.body["who"], entry.body["number"]) for entry in open_ledger(root).entries()]


def test_four_processes_append_two_hundred_entries_while_a_reader_never_sees_a_break(
    root: Path,
) -> None:
    processes = [start(root, name, 50) for name in "abcd"]
    deadline = time.monotonic() + 60
    while not (root / "host" / "key.vkey").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ledger, sizes = open_ledger(root), [0]
    while any(process.poll() is None for process in processes):
        sizes.append(ledger.verify().size)
        assert len(ledger.entries()) >= sizes[-1] >= sizes[-2]
    assert [finish(process) for process in processes] == [(0, "")] * 4
    assert sorted(told(root)) == [(name, number) for name in "abcd" for number in range(50)]
    report = ledger.verify()
    assert report.size == 200
    assert not [word for word in report.warnings if "clock" not in word]


def failpoints(root: Path) -> list[str]:
    """Return the names of the points that a second append passes, in order."""
    log = root / "points"
    assert finish(start(root, "first", 1)) == (0, "")
    assert finish(start(root, "second", 1, log=str(log))) == (0, "")
    return [line.split()[1] for line in log.read_text().splitlines()]


def test_an_append_passes_the_points_it_should(root: Path) -> None:
    assert failpoints(root) == [
        "ledger.append.write",
        "ledger.append.fsync",
        "ledger.append.checkpoint",
        "rename.before",
        "rename.after",
        "ledger.append.done",
    ]


@pytest.mark.parametrize(
    ("point", "kept"), [(1, False), (2, True), (3, True), (4, True), (5, True), (6, True)]
)
def test_a_kill_at_any_point_of_an_append_loses_and_doubles_nothing(
    root: Path, point: int, kept: bool
) -> None:
    assert finish(start(root, "before", 3)) == (0, "")
    code, _ = finish(start(root, "killed", 1, failpoint=str(point)))
    assert code == -signal.SIGKILL
    open_ledger(root).verify()
    assert finish(start(root, "after", 2)) == (0, "")
    killed = [("killed", 0)] if kept else []
    assert told(root) == [
        *(("before", number) for number in range(3)),
        *killed,
        *(("after", number) for number in range(2)),
    ]
    assert open_ledger(root).verify().warnings == ()


@pytest.mark.parametrize("point", range(1, 16))
def test_a_kill_during_the_very_first_append_leaves_a_usable_host(root: Path, point: int) -> None:
    # 1 to 4 make the key, 5 to 7 sign the empty ledger, the rest is the first append.
    code, _ = finish(start(root, "killed", 1, failpoint=str(point)))
    assert code == (-signal.SIGKILL if point <= 13 else 0)
    assert finish(start(root, "after", 1)) == (0, "")
    assert told(root) == [("killed", 0)] * (point >= 9) + [("after", 0)]
    assert open_ledger(root).verify().size == len(told(root))


@pytest.mark.parametrize("point", range(1, 11))
def test_a_kill_while_a_torn_tail_is_moved_aside_loses_no_word_of_it(
    root: Path, point: int
) -> None:
    assert finish(start(root, "before", 2)) == (0, "")
    with (root / "ledger" / "entries.jsonl").open("ab") as stream:
        stream.write(b'{"_type":"harn')
    # 1 and 2 keep the tail, 3 cuts it off, the rest is the append.
    code, _ = finish(start(root, "killed", 1, failpoint=str(point)))
    assert code == (-signal.SIGKILL if point <= 9 else 0)
    assert finish(start(root, "after", 1)) == (0, "")
    entries = open_ledger(root).entries()
    assert entries[2].notes["tornBytes"] == 14
    assert [entry.notes for entry in entries[3:]] == [{}] * len(entries[3:])
    assert [path.read_bytes() for path in (root / "ledger" / "torn").glob("2-*")] == [
        b'{"_type":"harn'
    ]


def test_a_file_that_may_not_grow_is_a_typed_error_and_the_next_append_repairs(
    root: Path,
) -> None:
    assert finish(start(root, "before", 3)) == (0, "")
    limit = (root / "ledger" / "entries.jsonl").stat().st_size + 500
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A write that crosses the limit is cut short by the kernel, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        process = start(root, "cut", 1, filler=2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    code, text = finish(process)
    assert code == 1
    assert re.match(r"StateError: ledger: expected to append \d+ bytes, got 500 written", text)
    assert finish(start(root, "after", 1)) == (0, "")
    assert told(root) == [("before", 0), ("before", 1), ("before", 2), ("after", 0)]
    assert open_ledger(root).entries()[3].notes["tornBytes"] == 500


def test_processes_that_need_a_key_at_once_get_the_same_one(root: Path) -> None:
    processes = [start(root, str(number), 1) for number in range(6)]
    assert [finish(process) for process in processes] == [(0, "")] * 6
    assert open_ledger(root).verify().size == 6
    assert sorted(path.name for path in (root / "host").iterdir()) == [
        "key.pem",
        "key.vkey",
        "lock",
    ]


def test_a_copied_ledger_is_refused_by_another_host(root: Path, tmp_path: Path) -> None:
    assert finish(start(root, "a", 1)) == (0, "")
    (tmp_path / "other").mkdir()
    stranger = KeyFolder(tmp_path / "other")
    stranger.make_first()
    ledger = Ledger(root / "ledger", stranger, now=lambda: datetime.now(UTC))
    with pytest.raises(
        LedgerBrokenError, match=f"expected one signature by {stranger.signer().verifier.name}"
    ):
        ledger.verify()
