"""A host's key hands over, or is replaced when it is lost; and what a reader makes of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from harness.errors import InputError, LedgerBrokenError
from harness.ledger.chain import hash_text
from harness.ledger.host_key import host_key_of, new_host_key
from harness.ledger.kept import read_kept, require_continues, require_handed_over
from harness.ledger.key_change import change_body, sign_by_all
from harness.ledger.log import Ledger
from harness.ledger.merkle import Frontier, leaf_hash
from harness.ledger.note import Checkpoint, open_checkpoint, parse_vkey
from harness.model.canonical import canonical_bytes
from tests.fakes.ledger_keys import MemoryKeys, key_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def open_ledger(folder: Path, keys: MemoryKeys) -> Ledger:
    return Ledger(folder, keys, now=lambda: NOW)


@pytest.fixture
def keys() -> MemoryKeys:
    return MemoryKeys(key_of(1))


@pytest.fixture
def ledger(tmp_path: Path, keys: MemoryKeys) -> Ledger:
    return open_ledger(tmp_path, keys)


def add(ledger: Ledger, count: int = 1) -> None:
    for number in range(count):
        ledger.append("seal", "done", project="p", body={"n": number})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_rotated_key_takes_over_under_the_old_keys_signature(
    ledger: Ledger, keys: MemoryKeys
) -> None:
    old = keys.signer().verifier
    add(ledger, 3)
    change = ledger.change_key("rotate")
    new = keys.signer().verifier
    assert (change.seq, change.verb, change.old, change.new) == (3, "rotate", old, new)
    assert new.name == old.name
    assert new.key_id != old.key_id
    at_the_switch = ledger.checkpoint().encode()
    for key in (old, new):
        assert open_checkpoint(at_the_switch, key).size == 4
    add(ledger, 2)
    with pytest.raises(LedgerBrokenError, match="expected one signature by"):
        open_checkpoint(ledger.checkpoint().encode(), old)
    report = ledger.verify()
    assert [(era.key, era.since, era.begun_by) for era in report.eras] == [
        (old, 0, "first"),
        (new, 3, "rotate"),
    ]
    assert report.warnings == ()


def test_many_rotations_in_a_row_and_on_an_empty_ledger(ledger: Ledger, keys: MemoryKeys) -> None:
    first = keys.signer().verifier
    for _ in range(3):
        ledger.change_key("rotate")
    add(ledger)
    report = ledger.verify()
    assert [era.since for era in report.eras] == [0, 0, 1, 2]
    assert {era.key.name for era in report.eras if era.key} == {first.name}
    require_handed_over(report, first)


def test_continuity_can_be_checked_with_nothing_of_ours(
    ledger: Ledger, keys: MemoryKeys, tmp_path: Path
) -> None:
    """What a stranger does who was given the first verifier key and the lines."""
    vkey = keys.signer().verifier.to_text()
    add(ledger, 2)
    ledger.change_key("rotate")
    lines = (tmp_path / "entries.jsonl").read_bytes().splitlines()
    leaves = [hashlib.sha256(b"\x00" + line).digest() for line in lines]
    root = hashlib.sha256(b"\x01" + leaves[0] + leaves[1]).digest()

    body = json.loads(lines[2])["body"]
    assert body["old"] == vkey
    text, _, signatures = body["note"].partition("\n\n")
    origin, size, coded, handover = text.split("\n")
    assert (origin, size, base64.b64decode(coded)) == (vkey.split("+", maxsplit=1)[0], "2", root)
    assert handover == f"next key {body['new']}"
    for line, key in zip(signatures.splitlines(), (vkey, body["new"]), strict=True):
        _, key_id, public = key.split("+", 2)
        raw = base64.b64decode(line.split(" ")[2])
        assert raw[:4].hex() == key_id
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public)[1:]).verify(
            raw[4:], (text + "\n").encode()
        )


def test_a_lost_key_is_replaced_openly(ledger: Ledger, keys: MemoryKeys) -> None:
    old = keys.signer()
    add(ledger, 3)
    before = ledger.checkpoint()
    lost = old.verifier

    keys.is_lost = True
    with pytest.raises(LedgerBrokenError, match="is lost"):
        ledger.change_key("rotate")
    with pytest.raises(LedgerBrokenError, match="is lost"):
        add(ledger)
    assert ledger.verify().size == 3, "reading needs no private key"
    change = ledger.change_key("renew")

    assert (change.verb, change.old, change.last) == ("renew", lost, before)
    assert change.new.name != lost.name
    add(ledger)
    report = ledger.verify()
    assert [era.begun_by for era in report.eras] == ["first", "renew"]
    assert "line 4: the host key had been lost" in report.warnings[0]
    require_handed_over(report, change.new)
    with pytest.raises(LedgerBrokenError, match=r"ledger line 4: the key was lost; no signature"):
        require_handed_over(report, lost)


def test_a_key_whose_public_half_is_lost_too(tmp_path: Path, keys: MemoryKeys) -> None:
    ledger = open_ledger(tmp_path, keys)
    add(ledger, 2)
    keys.key = None
    change = ledger.change_key("renew")
    assert (change.old, change.last) == (None, "")
    report = ledger.verify()
    assert [era.key for era in report.eras] == [None, change.new]
    with pytest.raises(LedgerBrokenError, match="never signed for it"):
        require_handed_over(report, key_of(1).verifier)


def test_after_a_rotation_the_ledger_itself_names_the_lost_key(
    tmp_path: Path, keys: MemoryKeys
) -> None:
    ledger = open_ledger(tmp_path, keys)
    add(ledger, 2)
    rotated = ledger.change_key("rotate").new
    add(ledger)
    keys.key = None
    change = ledger.change_key("renew")
    assert change.old == rotated
    assert open_checkpoint(change.last.encode(), rotated).size == 4
    assert ledger.verify().size == 5


def test_a_key_that_is_there_is_not_called_lost(ledger: Ledger, tmp_path: Path) -> None:
    add(ledger)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="is there, expected it to be lost") as caught:
        ledger.change_key("renew")
    assert "harness key rotate" in caught.value.hint
    assert contents(tmp_path) == before


def test_a_ledger_that_is_broken_gets_no_new_key(
    ledger: Ledger, keys: MemoryKeys, tmp_path: Path
) -> None:
    add(ledger, 3)
    path = tmp_path / "entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":7'))
    before = contents(tmp_path)
    with pytest.raises(LedgerBrokenError, match="ledger line 2"):
        ledger.change_key("rotate")
    keys.key = None
    with pytest.raises(LedgerBrokenError, match="ledger line 2"):
        ledger.change_key("renew")
    assert contents(tmp_path) == before
    assert keys.next is None


def test_a_change_of_key_is_no_ordinary_entry(ledger: Ledger) -> None:
    with pytest.raises(RuntimeError, match="change_key"):
        ledger.append("rotate", "done", project="", body={})
    assert ledger.entries() == []


def test_a_key_that_was_rotated_away_can_not_speak_any_more(tmp_path: Path) -> None:
    """Whoever stole the old key, and can write here, still can't go on with it."""
    stolen = key_of(1)
    keys = MemoryKeys(stolen)
    ledger = open_ledger(tmp_path, keys)
    add(ledger, 2)
    ledger.change_key("rotate")
    add(ledger)
    report = ledger.verify()
    root = bytes.fromhex(report.root.removeprefix("sha256:"))
    forged = Checkpoint(origin=stolen.verifier.name, size=report.size, root=root)
    (tmp_path / "checkpoint").write_text(sign_by_all(forged.to_text(), (stolen,)))
    for held in (keys, MemoryKeys(stolen)):
        with pytest.raises(LedgerBrokenError, match="expected one signature by"):
            open_ledger(tmp_path, held).verify()


def rewrite_change(folder: Path, keys: MemoryKeys, body: dict[str, Any]) -> None:
    """Put another change in the last place, with a right chain and a right checkpoint over it."""
    lines = (folder / "entries.jsonl").read_bytes().splitlines()
    entry = json.loads(lines[-1])
    lines[-1] = canonical_bytes({**entry, "body": body})
    tree = Frontier()
    for line in lines:
        tree = tree.append(leaf_hash(line))
    (folder / "entries.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    signer = keys.signer()
    checkpoint = Checkpoint(origin=signer.verifier.name, size=tree.size, root=tree.root())
    (folder / "checkpoint").write_text(sign_by_all(checkpoint.to_text(), (signer,)))


def forgeries() -> dict[str, Any]:
    old, eve = key_of(1), key_of(9)
    named = host_key_of(eve.private, name=old.verifier.name)
    tree = Frontier().append(leaf_hash(b"other"))

    def put(body: dict[str, Any], **change: Any) -> dict[str, Any]:
        return {**body, **change}

    return {
        "only the new key signed": lambda b, t: change_body(
            "rotate", t, old=old.verifier, last="", signers=(named,)
        ),
        "another place": lambda b, t: change_body(
            "rotate", tree, old=old.verifier, last="", signers=(old, named)
        ),
        "another key": lambda b, t: put(b, new=named.verifier.to_text()),
        "a name of its own": lambda b, t: change_body(
            "rotate", t, old=old.verifier, last="", signers=(old, eve)
        ),
        "an unknown old key": lambda b, t: put(b, old=""),
        "another old key": lambda b, t: change_body(
            "rotate",
            t,
            old=named.verifier,
            last="",
            signers=(named, host_key_of(new_host_key().private, name=old.verifier.name)),
        ),
        "the words of a loss": lambda b, t: put(
            b, note=change_body("renew", t, old=old.verifier, last="", signers=(old, named))["note"]
        ),
        "a member more": lambda b, t: put(b, more=""),
        "no text": lambda b, t: put(b, note=1),
        "no key": lambda b, t: put(b, new="garbage"),
        "no note": lambda b, t: put(b, note="garbage"),
        "a last checkpoint of nobody": lambda b, t: put(b, last="garbage"),
    }


@pytest.mark.parametrize("name", forgeries())
def test_a_forged_handover_is_named(
    ledger: Ledger, keys: MemoryKeys, tmp_path: Path, name: str
) -> None:
    add(ledger, 2)
    tree = Frontier()
    for line in (tmp_path / "entries.jsonl").read_bytes().splitlines():
        tree = tree.append(leaf_hash(line))
    ledger.change_key("rotate")
    body = json.loads((tmp_path / "entries.jsonl").read_bytes().splitlines()[-1])["body"]
    rewrite_change(tmp_path, keys, forgeries()[name](body, tree))
    with pytest.raises(LedgerBrokenError, match=r"^ledger line 3: "):
        ledger.verify()


def test_a_lost_keys_last_checkpoint_must_be_about_these_lines(
    tmp_path: Path, keys: MemoryKeys
) -> None:
    old = key_of(1)
    ledger = open_ledger(tmp_path, keys)
    add(ledger, 2)
    keys.is_lost = True
    ledger.change_key("renew")
    body = json.loads((tmp_path / "entries.jsonl").read_bytes().splitlines()[-1])["body"]
    other = Checkpoint(origin=old.verifier.name, size=2, root=leaf_hash(b"other"))
    rewrite_change(tmp_path, keys, {**body, "last": sign_by_all(other.to_text(), (old,))})
    with pytest.raises(LedgerBrokenError, match="ledger line 3: the last checkpoint of the lost"):
        ledger.verify()


# ---- what somebody kept elsewhere ----


def check(ledger: Ledger, note: str) -> int:
    watched = ledger.verify(watch=(read_kept(note.encode()).size,))
    return require_continues(watched, note.encode()).size


def test_every_checkpoint_ever_given_out_stays_good(ledger: Ledger, keys: MemoryKeys) -> None:
    given = []
    for step in range(8):
        if step in (2, 5):
            ledger.change_key("rotate")
        else:
            add(ledger)
        given.append(ledger.checkpoint())
    assert [check(ledger, note) for note in given] == list(range(1, 9))


def test_a_ledger_that_was_cut_back_or_replaced_is_noticed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    keys = MemoryKeys(key_of(1))
    one = open_ledger(tmp_path / "one", keys)
    add(one, 4)
    kept = one.checkpoint()
    two = open_ledger(tmp_path / "two", keys)
    add(two, 3)
    with pytest.raises(LedgerBrokenError, match=r"expected at least the 4 entries .* got 3"):
        check(two, kept)
    two.append("seal", "done", project="other", body={})
    with pytest.raises(LedgerBrokenError, match=r"expected root sha256:.* over the first 4"):
        check(two, kept)


def test_a_kept_checkpoint_must_be_of_the_key_in_force_then(
    ledger: Ledger, keys: MemoryKeys
) -> None:
    add(ledger, 2)
    kept = ledger.checkpoint()
    early = ledger.verify()
    ledger.change_key("rotate")
    root = bytes.fromhex(early.root.removeprefix("sha256:"))
    late = Checkpoint(origin=keys.signer().verifier.name, size=2, root=root)
    assert check(ledger, kept) == 2
    with pytest.raises(LedgerBrokenError, match="expected one signature by"):
        check(ledger, sign_by_all(late.to_text(), (keys.signer(),)))


def test_a_checkpoint_of_a_key_that_nobody_knows_can_not_be_checked(
    tmp_path: Path, keys: MemoryKeys
) -> None:
    ledger = open_ledger(tmp_path, keys)
    add(ledger, 2)
    kept = ledger.checkpoint()
    keys.key = None
    ledger.change_key("renew")
    with pytest.raises(LedgerBrokenError, match="the key that was in force then is lost"):
        check(ledger, kept)


def test_the_first_keys_name_is_that_of_its_bytes(ledger: Ledger, keys: MemoryKeys) -> None:
    verifier = keys.signer().verifier
    digits = hashlib.sha256(verifier.public).hexdigest()[:16]
    assert verifier.name == f"sealed-harness/{digits}"
    add(ledger)
    assert re.match(rf"sealed-harness/{digits}\n1\n", ledger.checkpoint())
    assert parse_vkey(verifier.to_text()) == verifier
    assert hash_text(ledger.verify().roots.get(9, b"")) == "sha256:"
