"""The worked example in docs/reference/ledger.md is what the code writes, and checks by itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from harness.ledger.log import Ledger
from harness.model.entry import EntryVerb, Phase
from tests.fakes.ledger_keys import MemoryKeys, key_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ledger.md"
KEY = key_of(1)
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

WRITTEN: list[tuple[timedelta, EntryVerb, Phase, str, dict[str, Any]]] = [
    (timedelta(0), "build", "done", "", {"name": "python", "platform": "linux/amd64"}),
    (timedelta(seconds=5), "seal", "done", "demo", {"run": "r1"}),
    (timedelta(seconds=3), "run", "intent", "demo", {"run": "r1"}),
]


def blocks() -> dict[str, str]:
    """Return the page's fenced blocks by the name in the comment before each."""
    pattern = re.compile(r"<!-- (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)
    return dict(pattern.findall(PAGE.read_text(encoding="utf-8")))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    moments: Iterator[datetime] = iter([START + offset for offset, *_ in WRITTEN])
    ledger = Ledger(tmp_path, MemoryKeys(KEY), now=lambda: next(moments))
    for _, verb, phase, project, body in WRITTEN:
        ledger.append(verb, phase, project=project, body=body)
    return tmp_path


@pytest.mark.parametrize(
    ("block", "name"),
    [("entries", "entries.jsonl"), ("checkpoint", "checkpoint"), ("frontier", "frontier")],
)
def test_the_example_is_what_the_code_writes(written: Path, block: str, name: str) -> None:
    assert blocks()[block].rstrip("\n") == (written / name).read_text(encoding="utf-8").rstrip("\n")


def test_the_example_key_is_the_one_that_signed() -> None:
    assert blocks()["vkey"] == KEY.verifier.to_text() + "\n"


def test_the_example_hashes_follow_from_the_lines() -> None:
    """Follow the page's own steps with nothing of ours: what a stranger would write."""
    lines = blocks()["entries"].rstrip("\n").split("\n")
    leaves = [hashlib.sha256(b"\x00" + line.encode()).digest() for line in lines]
    first = hashlib.sha256(b"\x01" + leaves[0] + leaves[1]).digest()
    root = hashlib.sha256(b"\x01" + first + leaves[2]).digest()
    shown = blocks()["hashes"].split()
    assert [value.hex() for value in (*leaves, first, root)] == shown[1::2]
    links = [json.loads(line)["prev"] for line in lines]
    nothing = hashlib.sha256(b"\x00").digest()
    assert links == ["sha256:" + value.hex() for value in (nothing, *leaves[:2])]

    text, _, signature = blocks()["checkpoint"].partition("\n\n")
    origin, size, coded = text.split("\n")
    name, key_id, public = blocks()["vkey"].rstrip("\n").split("+", 2)
    assert (origin, size, base64.b64decode(coded)) == (name, "3", root)
    raw = base64.b64decode(signature.split(" ")[2])
    key = base64.b64decode(public)
    assert raw[:4].hex() == key_id
    assert raw[:4] == hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    Ed25519PublicKey.from_public_bytes(key[1:]).verify(raw[4:], (text + "\n").encode())
