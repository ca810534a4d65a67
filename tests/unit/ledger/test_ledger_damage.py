"""Every damage to a small ledger is noticed, and the line that is named is the right one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import LedgerBrokenError
from harness.ledger.chain import hash_text
from harness.ledger.log import Ledger
from harness.ledger.merkle import leaf_hash
from harness.model.entry import Entry, parse_entry
from tests.fakes.ledger_keys import MemoryKeys, key_of

KEY = key_of(1)
SIZE = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger")


@pytest.fixture(scope="module")
def ledger(folder: Path) -> Ledger:
    made = Ledger(folder, MemoryKeys(KEY), now=lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))
    for number in range(SIZE):
        made.append("seal", "done", project="p", body={"n": number})
    return made


@pytest.fixture(scope="module")
def original(ledger: Ledger, folder: Path) -> bytes:
    return (folder / "entries.jsonl").read_bytes()


@pytest.fixture(autouse=True)
def restored(folder: Path, original: bytes) -> None:
    (folder / "entries.jsonl").write_bytes(original)


def named_line(ledger: Ledger, folder: Path, data: bytes) -> int:
    """Return the line that verify names for these bytes."""
    (folder / "entries.jsonl").write_bytes(data)
    with pytest.raises(LedgerBrokenError) as caught:
        ledger.verify()
    found = re.match(r"ledger line (\d+): ", caught.value.message)
    assert found, caught.value.message
    return int(found[1])


@pytest.mark.parametrize("mask", [0x01, 0x04])
def test_every_changed_byte_is_noticed_in_its_line(
    ledger: Ledger, folder: Path, original: bytes, mask: int
) -> None:
    for place in range(len(original)):
        bad = bytearray(original)
        bad[place] ^= mask
        assert named_line(ledger, folder, bytes(bad)) == original[:place].count(b"\n") + 1, place


def test_every_truncation_is_noticed_at_the_first_line_that_is_cut(
    ledger: Ledger, folder: Path, original: bytes
) -> None:
    for length in range(len(original)):
        cut = original[:length]
        assert named_line(ledger, folder, cut) == cut.count(b"\n") + 1, length


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_replaced_stretch_is_noticed(
    ledger: Ledger, folder: Path, original: bytes, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start, len(original)))
    bad = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    if bad.startswith(original):
        return
    assert named_line(ledger, folder, bad) <= SIZE


def split(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


@pytest.mark.parametrize("number", range(1, SIZE + 1))
def test_a_deleted_line_is_named(
    ledger: Ledger, folder: Path, original: bytes, number: int
) -> None:
    kept = split(original)
    del kept[number - 1]
    assert named_line(ledger, folder, b"".join(kept)) == number


@pytest.mark.parametrize("number", range(1, SIZE))
def test_two_swapped_lines_are_named_by_the_first(
    ledger: Ledger, folder: Path, original: bytes, number: int
) -> None:
    kept = split(original)
    kept[number - 1], kept[number] = kept[number], kept[number - 1]
    assert named_line(ledger, folder, b"".join(kept)) == number


@pytest.mark.parametrize("number", range(1, SIZE + 1))
def test_a_repeated_line_is_named_where_it_repeats(
    ledger: Ledger, folder: Path, original: bytes, number: int
) -> None:
    kept = split(original)
    kept.insert(number, kept[number - 1])
    if number == SIZE:  # beyond the checkpoint it is a torn tail, which the report names
        (folder / "entries.jsonl").write_bytes(b"".join(kept))
        assert ledger.verify().warnings == (
            f"line {SIZE + 1}: {len(kept[-1])} torn bytes; the next append moves them aside",
        )
    else:
        assert named_line(ledger, folder, b"".join(kept)) in (number, number + 1)


def changed(line: bytes, change: Callable[[Entry], Entry]) -> bytes:
    return change(parse_entry(line[:-1])).to_bytes() + b"\n"


def with_body(entry: Entry) -> Entry:
    return Entry(
        seq=entry.seq,
        time=entry.time,
        prev=entry.prev,
        verb=entry.verb,
        phase=entry.phase,
        project=entry.project,
        body={"forged": True},
        notes=entry.notes,
    )


@pytest.mark.parametrize("number", range(1, SIZE + 1))
def test_a_forged_line_in_place_of_another_is_named(
    ledger: Ledger, folder: Path, original: bytes, number: int
) -> None:
    kept = split(original)
    kept[number - 1] = changed(kept[number - 1], with_body)
    assert named_line(ledger, folder, b"".join(kept)) == number


@pytest.mark.parametrize("number", range(1, SIZE + 1))
def test_a_forged_line_put_in_before_another_is_named(
    ledger: Ledger, folder: Path, original: bytes, number: int
) -> None:
    kept = split(original)
    kept.insert(number - 1, changed(kept[number - 1], with_body))
    assert named_line(ledger, folder, b"".join(kept)) == number


def test_a_rewritten_history_with_good_links_is_noticed_by_the_signed_root(
    ledger: Ledger, folder: Path, original: bytes
) -> None:
    kept = split(original)
    kept[1] = changed(kept[1], with_body)
    for number in range(2, SIZE):
        prev = hash_text(leaf_hash(kept[number - 1][:-1]))
        kept[number] = re.sub(rb"sha256:[0-9a-f]{64}", prev.encode(), kept[number])
    (folder / "entries.jsonl").write_bytes(b"".join(kept))
    expected = r"line 6: expected root .* or an earlier one together with every link after it"
    with pytest.raises(LedgerBrokenError, match=expected):
        ledger.verify()


def test_an_unnoted_clock_step_is_named(ledger: Ledger, folder: Path, original: bytes) -> None:
    kept = split(original)
    kept[3] = kept[3].replace(b"T12:00:00.000Z", b"T11:59:59.000Z")
    (folder / "entries.jsonl").write_bytes(b"".join(kept))
    with pytest.raises(LedgerBrokenError, match="line 4: expected a clock step of 1000 ms, got 0"):
        ledger.verify()


def test_lines_are_verified_again_once_they_are_restored(ledger: Ledger) -> None:
    assert ledger.verify().size == SIZE
