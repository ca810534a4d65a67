"""Append and read: order, notes, torn tails, refusals."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import ApprovalConsumedError, InputError, LedgerBrokenError, StateError
from harness.ledger.log import Ledger
from harness.ledger.merkle import Frontier, leaf_hash, root_of
from harness.ledger.note import open_checkpoint
from harness.model.digest import digest_of
from harness.model.entry import Entry
from tests.fakes.ledger_keys import MemoryKeys, key_of

KEY = key_of(1)
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


class FixedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.moment = START

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: FixedClock) -> Ledger:
    return Ledger(tmp_path, MemoryKeys(KEY), now=clock)


def add(ledger: Ledger, count: int = 1) -> list[Entry]:
    return [ledger.append("seal", "done", project="p", body={"n": n}) for n in range(count)]


def lines(folder: Path) -> list[bytes]:
    return (folder / "entries.jsonl").read_bytes().split(b"\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_empty_ledger_reads_as_empty_and_writes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.entries() == []
    assert ledger.checkpoint() == ""
    report = ledger.verify()
    assert (report.size, report.time, report.checkpoint, report.warnings) == (0, "", "", ())
    assert contents(tmp_path) == {}


def test_what_was_appended_is_read_and_signed(ledger: Ledger, tmp_path: Path) -> None:
    appended = add(ledger, 5)
    assert ledger.entries() == appended
    assert [entry.seq for entry in appended] == [0, 1, 2, 3, 4]
    checkpoint = open_checkpoint(ledger.checkpoint().encode(), KEY.verifier)
    assert checkpoint.size == 5
    assert checkpoint.root == root_of(leaf_hash(line) for line in lines(tmp_path))
    report = ledger.verify()
    assert report.size == 5
    assert report.root == "sha256:" + checkpoint.root.hex()
    assert report.time == "2026-01-31T12:00:00.000Z"
    assert report.checkpoint == ledger.checkpoint()
    assert report.warnings == ()


def test_every_line_links_to_the_leaf_hash_of_the_line_before(
    ledger: Ledger, tmp_path: Path
) -> None:
    entries = add(ledger, 3)
    before = [b"", *lines(tmp_path)]
    for entry, line in zip(entries, before, strict=False):
        assert entry.prev == "sha256:" + leaf_hash(line).hex()


def test_files_are_for_the_owner_only(ledger: Ledger, tmp_path: Path) -> None:
    add(ledger)
    for name in ("entries.jsonl", "checkpoint", "frontier", "lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_check_sees_all_entries_and_can_refuse_before_anything_is_written(
    ledger: Ledger, tmp_path: Path
) -> None:
    first = add(ledger, 3)
    before = contents(tmp_path)
    seen: list[Entry] = []

    def refuse(entries: Sequence[Entry]) -> None:
        seen.extend(entries)
        raise ApprovalConsumedError("nonce: was spent")

    with pytest.raises(ApprovalConsumedError, match="nonce: was spent"):
        ledger.append("run", "intent", project="p", body={}, check=refuse)
    assert seen == first
    assert contents(tmp_path) == before


def test_a_check_that_agrees_lets_the_entry_in(ledger: Ledger) -> None:
    seen: list[int] = []
    for _ in range(3):
        ledger.append(
            "seal", "done", project="", body={}, check=lambda all_: seen.append(len(all_))
        )
    assert seen == [0, 1, 2]
    assert ledger.verify().size == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"n": 1.5}, "expected an integer, got the float"),
        ({"text": "x" * 70_000}, "expected at most 65535 bytes"),
        ({"text": "\ud800"}, "canonical form"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(
    ledger: Ledger, tmp_path: Path, body: dict[str, object], message: str
) -> None:
    add(ledger)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=message):
        ledger.append("seal", "done", project="p", body=body)
    assert contents(tmp_path) == before


def test_an_unknown_verb_is_not_written(ledger: Ledger, tmp_path: Path) -> None:
    add(ledger)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="unknown verb 'destroy'"):
        ledger.append("destroy", "done", project="p", body={})  # type: ignore[arg-type]
    assert contents(tmp_path) == before


def test_a_clock_that_jumps_back_is_noted_and_named(ledger: Ledger, clock: FixedClock) -> None:
    add(ledger)
    clock.moment = START - timedelta(milliseconds=90_500)
    assert add(ledger)[0].notes == {"clockStepMs": 90_500}
    clock.moment = START
    assert add(ledger)[0].notes == {}
    assert ledger.verify().warnings == ("line 2: the clock had stepped back by 90500 ms",)


@pytest.mark.parametrize("frontier", ["kept", "deleted"])
def test_a_torn_tail_is_moved_aside_and_the_next_entry_says_so(
    ledger: Ledger, tmp_path: Path, frontier: str
) -> None:
    add(ledger, 2)
    whole = (tmp_path / "entries.jsonl").read_bytes()
    torn = b'{"_type":"harness/en'
    (tmp_path / "entries.jsonl").write_bytes(whole + torn)
    assert ledger.verify().warnings == ("line 3: 20 torn bytes; the next append moves them aside",)
    assert len(ledger.entries()) == 2
    if frontier == "deleted":
        (tmp_path / "frontier").unlink()
    entry = add(ledger)[0]
    assert entry.seq == 2
    assert entry.notes == {"tornBytes": 20, "tornDigests": [digest_of(torn)]}
    assert (tmp_path / "torn" / f"2-{digest_of(torn)[7:19]}").read_bytes() == torn
    assert ledger.verify().warnings == ("line 3: 20 torn bytes were moved aside",)
    assert add(ledger)[0].notes == {}


def test_a_whole_line_that_is_no_entry_is_a_torn_tail_too(ledger: Ledger, tmp_path: Path) -> None:
    add(ledger, 2)
    with (tmp_path / "entries.jsonl").open("ab") as stream:
        stream.write(b"\0" * 100 + b"\n")
    assert add(ledger)[0].notes["tornBytes"] == 101
    assert ledger.verify().size == 3


@pytest.mark.parametrize("tail", [b"x\nx", b"x\n\n", b"x" * 65_537, b"x" * 200_000])
def test_more_than_one_interrupted_append_can_leave_is_refused(
    ledger: Ledger, tmp_path: Path, tail: bytes
) -> None:
    add(ledger, 2)
    with (tmp_path / "entries.jsonl").open("ab") as stream:
        stream.write(tail)
    before = contents(tmp_path)
    for use in (ledger.verify, ledger.entries, lambda: add(ledger)):
        with pytest.raises(LedgerBrokenError, match=r"^ledger line 3: expected an entry, got \d+"):
            use()
    assert contents(tmp_path) == before


def test_two_torn_tails_before_one_entry_are_both_told(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(ledger)
    with (tmp_path / "entries.jsonl").open("ab") as stream:
        stream.write(b"one")
    cut_writes(monkeypatch, 5)
    with pytest.raises(StateError, match=r"expected to append \d+ bytes, got 5 written"):
        add(ledger)
    monkeypatch.undo()
    entry = add(ledger)[0]
    assert entry.notes["tornBytes"] == 8
    assert sorted(entry.notes["tornDigests"]) == sorted([digest_of(b"one"), digest_of(b'{"_ty')])


def cut_writes(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """Let the disk take only the beginning of an entry, as a full one does."""
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        short = bytes(data).startswith(b'{"_type":"harness/entry')
        return real(descriptor, bytes(data)[:length] if short else data)

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_failing_disk_is_a_typed_error_and_the_ledger_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    add(ledger, 2)

    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StateError, match=f"append to entries.jsonl: {os.strerror(code)}") as caught:
        add(ledger)
    assert ("disk space" in caught.value.hint) == (code != errno.EIO)
    monkeypatch.undo()
    ledger.verify()
    add(ledger)
    # A line whose sync failed may be there: it is kept, once.
    assert ledger.verify().size == (3 if call == "write" else 4)


def test_whole_lines_without_a_checkpoint_are_kept_and_signed_next(
    ledger: Ledger, tmp_path: Path
) -> None:
    add(ledger, 2)
    old = contents(tmp_path)
    add(ledger, 2)
    for name in ("checkpoint", "frontier"):
        (tmp_path / name).write_bytes(old[name])
    assert len(ledger.entries()) == 4
    assert ledger.verify().warnings == (
        "lines 3 to 4: no checkpoint covers them yet; the next append signs",
    )
    assert add(ledger)[0].seq == 4
    assert ledger.verify().warnings == ()


def test_the_first_append_that_died_before_its_checkpoint_is_kept(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fail_on_entries(os.fsync, tmp_path))
    with pytest.raises(StateError):
        add(ledger)
    monkeypatch.undo()
    assert ledger.verify().size == 1
    assert add(ledger)[0].seq == 1


def fail_on_entries(real: object, folder: Path) -> object:
    """Fail to sync the lines, once there are some."""

    def fsync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == (folder / "entries.jsonl").stat().st_ino:
            raise OSError(errno.EIO, "Input/output error")
        assert callable(real)
        real(descriptor)

    return fsync


def test_the_frontier_saves_reading_and_is_rebuilt_when_missing_stale_or_wrong(
    ledger: Ledger, tmp_path: Path
) -> None:
    add(ledger, 5)
    stale = (tmp_path / "frontier").read_bytes()
    add(ledger, 2)
    good = json.loads((tmp_path / "frontier").read_bytes())
    assert good["size"] == 7
    bad: list[bytes] = [stale, b"", b"garbage", b"[]", b"{}"]
    for name, value in [
        ("size", 6),
        ("size", -1),
        ("size", "7"),
        ("length", good["length"] - 1),
        ("length", -5),
        ("length", 2**52),
        ("length", "x"),
        ("leaf", "sha256:" + "0" * 64),
        ("hashes", ["00" * 32] * 3),
        ("hashes", ["zz"] * 3),
        ("hashes", [1, 2, 3]),
        ("hashes", 7),
        ("hashes", []),
    ]:
        text = json.dumps({**good, name: value}, sort_keys=True, separators=(",", ":"))
        bad.append(text.encode())
    for number, data in enumerate(bad):
        (tmp_path / "frontier").write_bytes(data)
        assert add(ledger)[0].seq == 7 + number
        assert json.loads((tmp_path / "frontier").read_bytes())["size"] == 8 + number
        assert ledger.verify().size == 8 + number
    (tmp_path / "frontier").unlink()
    add(ledger)
    assert ledger.verify().size == 8 + len(bad)


def test_a_full_disk_at_the_frontier_does_not_fail_a_signed_entry(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(ledger)
    real = os.open

    def no_frontier(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).name == "frontier" and flags & os.O_WRONLY:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", no_frontier)
    assert [add(ledger)[0].seq for _ in range(3)] == [1, 2, 3]
    monkeypatch.undo()
    assert json.loads((tmp_path / "frontier").read_bytes())["size"] == 1
    assert add(ledger)[0].seq == 4
    assert ledger.verify().size == 5


def test_an_append_reads_only_the_end_of_a_long_ledger(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(ledger, 50)
    hashed: list[int] = []
    real = Frontier.append

    def counted(tree: Frontier, leaf: bytes) -> Frontier:
        hashed.append(tree.size)
        return real(tree, leaf)

    monkeypatch.setattr(Frontier, "append", counted)
    add(ledger)
    assert hashed == [50]


def break_by_cutting(folder: Path) -> None:
    (folder / "entries.jsonl").write_bytes(b"\n".join(lines(folder)[:2]) + b"\n")


def break_by_editing_the_end(folder: Path) -> None:
    data = (folder / "entries.jsonl").read_bytes()
    (folder / "entries.jsonl").write_bytes(data.replace(b'"n":3', b'"n":4'))


def break_the_checkpoint(folder: Path) -> None:
    (folder / "checkpoint").write_bytes(b"garbage")


def break_by_removing_the_checkpoint(folder: Path) -> None:
    (folder / "checkpoint").unlink()


def break_by_removing_the_entries(folder: Path) -> None:
    (folder / "entries.jsonl").unlink()


def break_with_another_key(folder: Path) -> None:
    other = key_of(2)
    (folder / "entries.jsonl").unlink()
    (folder / "checkpoint").unlink()
    add(Ledger(folder, MemoryKeys(other), now=lambda: START), 4)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_by_cutting, "ledger line 3: is missing: the checkpoint covers 4 lines"),
        (break_by_editing_the_end, "ledger line 4: expected root sha256:"),
        (break_the_checkpoint, "checkpoint: expected text, an empty line and signatures"),
        (break_by_removing_the_checkpoint, "ledger: checkpoint is missing, but there are entries"),
        (break_by_removing_the_entries, "ledger line 1: is missing"),
        (break_with_another_key, "checkpoint: expected one signature by sealed-harness/3475"),
    ],
)
def test_a_broken_ledger_is_named_by_readers_and_not_extended(
    ledger: Ledger, tmp_path: Path, damage: object, message: str
) -> None:
    add(ledger, 4)
    assert callable(damage)
    damage(tmp_path)
    before = contents(tmp_path)
    for use in (
        ledger.verify,
        ledger.entries,
        lambda: add(ledger),
        lambda: ledger.append("seal", "done", project="", body={}, check=lambda _: None),
    ):
        with pytest.raises(LedgerBrokenError, match=f"^{message}"):
            use()
    assert contents(tmp_path) == before


def test_links_in_place_of_our_files_are_not_followed(ledger: Ledger, tmp_path: Path) -> None:
    add(ledger)
    for name in ("entries.jsonl", "checkpoint"):
        path = tmp_path / name
        path.rename(tmp_path / "elsewhere")
        path.symlink_to("elsewhere")
        with pytest.raises(StateError, match=f"read {name}"):
            ledger.verify()
        path.unlink()
        (tmp_path / "elsewhere").rename(path)
    ledger.verify()
