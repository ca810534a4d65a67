"""C2SP's own worked examples of signed notes and checkpoints (CC BY 4.0, BSD-1-Clause)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import LedgerBrokenError
from harness.ledger.note import open_note, parse_checkpoint, parse_vkey

pytestmark = pytest.mark.vectors


@pytest.fixture
def examples(shared_vectors: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        (shared_vectors / "c2sp-tlog" / "examples.json").read_text()
    )
    return found


def test_the_signed_note_verifies_and_a_changed_one_does_not(examples: dict[str, object]) -> None:
    example = examples["signed_note"]
    assert isinstance(example, dict)
    key = parse_vkey(example["vkey"])
    assert key.to_text() == example["vkey"]
    note = example["note"].encode()
    assert open_note(note, key) == "This is an example message.\n"
    with pytest.raises(LedgerBrokenError, match=r"signature by example\.com/foo is wrong"):
        open_note(note.replace(b"example message", b"Example message"), key)


def test_the_checkpoint_reads_and_is_written_the_same(examples: dict[str, object]) -> None:
    note = examples["checkpoint_syntax_only"]
    assert isinstance(note, str)
    text = note[: note.index("\n\n") + 1]
    checkpoint = parse_checkpoint(text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.to_text() == text


def test_the_cosigned_message_holds_a_checkpoint(examples: dict[str, object]) -> None:
    message = examples["cosignature_v1_message"]
    assert isinstance(message, str)
    header, time, text = message.split("\n", 2)
    assert (header, time) == ("cosignature/v1", "time 1679315147")
    assert parse_checkpoint(text).size == 20852163
