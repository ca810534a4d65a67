"""A change of key whose process is killed at every point: readable at once, ended by the next."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.ledger.key_change import KeyChange, KeyVerb
from harness.ledger.key_folder import KeyFolder
from harness.ledger.log import Ledger
from tests.fakes.kill import kill_at


def open_ledger(root: Path) -> Ledger:
    return Ledger(root / "ledger", KeyFolder(root / "host"), now=lambda: datetime.now(UTC))


def begin(root: Path, *, lose: tuple[str, ...] = ()) -> None:
    for name in ("host", "ledger"):
        (root / name).mkdir(mode=0o700, parents=True)
    KeyFolder(root / "host").make_first()
    for number in range(2):
        open_ledger(root).append("seal", "done", project="p", body={"n": number})
    for name in lose:
        (root / "host" / name).unlink()


def give_again(ledger: Ledger, verb: KeyVerb) -> KeyChange | None:
    """Give a killed change again; one that had ended leaves nothing that is lost to renew."""
    try:
        return ledger.change_key(verb)
    except InputError:  # expected it to be lost
        assert ledger.verify().eras[-1].begun_by == "renew"
        return None


@pytest.mark.parametrize(
    ("verb", "lose"),
    [("rotate", ()), ("renew", ("key.pem",)), ("renew", ("key.pem", "key.vkey"))],
)
def test_a_killed_change_is_readable_and_ended(
    tmp_path: Path, verb: KeyVerb, lose: tuple[str, ...]
) -> None:
    sizes = set()
    for point in count(1):
        root = tmp_path / str(point)
        begin(root, lose=lose)
        ledger = open_ledger(root)
        killed = kill_at(point, lambda: ledger.change_key(verb))  # noqa: B023 - called at once
        if "key.vkey" not in lose:
            sizes.add(ledger.verify().size)
        change = give_again(ledger, verb) if killed else None
        report = ledger.verify()
        # A second rotation when the first had ended and only its process had not.
        assert [era.begun_by for era in report.eras][:2] == ["first", verb]
        assert change is None or report.eras[-1].key == change.new
        assert ledger.append("seal", "done", project="p", body={}).seq == report.size
        assert sorted(path.name for path in (root / "host").iterdir()) == [
            "key.pem",
            "key.vkey",
            "lock",
        ]
        if not killed:
            break
    assert point > 10
    assert sizes == (set() if "key.vkey" in lose else {2, 3})


def test_an_append_ends_a_rotation_too(tmp_path: Path) -> None:
    for point in count(1):
        root = tmp_path / str(point)
        begin(root)
        ledger = open_ledger(root)
        if not kill_at(point, lambda: ledger.change_key("rotate")):  # noqa: B023 - called at once
            break
        seen = ledger.verify()
        entry = ledger.append("seal", "done", project="p", body={})
        report = ledger.verify()
        assert entry.seq == seen.size
        assert [era.since for era in report.eras] == [0, *([2] if seen.size == 3 else [])]
        assert not (root / "host" / "next.pem").exists()
