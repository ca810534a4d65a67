"""Signed notes, verifier keys and checkpoints."""

from __future__ import annotations

import base64
import re

import pytest

from harness.errors import InputError, LedgerBrokenError
from harness.ledger.host_key import HostKey
from harness.ledger.merkle import EMPTY_ROOT, leaf_hash
from harness.ledger.note import (
    MAX_NOTE,
    MAX_SIGNATURES,
    Checkpoint,
    VerifierKey,
    open_checkpoint,
    open_note,
    parse_checkpoint,
    parse_vkey,
    sign_note,
)
from tests.fakes.ledger_keys import key_of

OURS, THEIRS = key_of(1), key_of(2)
CHECKPOINT = Checkpoint(origin=OURS.verifier.name, size=7, root=leaf_hash(b"root"))


def signed(text: str, key: HostKey = OURS) -> str:
    return sign_note(text, key.verifier, key.sign)


NOTE = signed(CHECKPOINT.to_text())


def test_a_checkpoint_reads_back() -> None:
    assert open_checkpoint(NOTE.encode(), OURS.verifier) == CHECKPOINT


def test_a_witness_may_add_its_signature_before_or_after_ours() -> None:
    text = CHECKPOINT.to_text()
    ours = NOTE.removeprefix(text + "\n")
    theirs = signed(text, THEIRS).removeprefix(text + "\n")
    for note in (text + "\n" + ours + theirs, text + "\n" + theirs + ours):
        assert open_checkpoint(note.encode(), OURS.verifier) == CHECKPOINT


def test_every_flipped_bit_of_a_checkpoint_is_noticed() -> None:
    data = NOTE.encode()
    for place in range(len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[place] ^= 1 << bit
            with pytest.raises(LedgerBrokenError, match=r"^checkpoint: "):
                open_checkpoint(bytes(bad), OURS.verifier)


def test_every_truncation_of_a_checkpoint_is_noticed() -> None:
    data = NOTE.encode()
    for length in range(len(data)):
        with pytest.raises(LedgerBrokenError, match=r"^checkpoint: "):
            open_checkpoint(data[:length], OURS.verifier)


def test_another_hosts_signature_is_named() -> None:
    note = signed(CHECKPOINT.to_text(), THEIRS)
    ours, theirs = (f"{key.verifier.name}+{key.verifier.key_id.hex()}" for key in (OURS, THEIRS))
    expected = f"expected one signature by {ours}, got 0 (signers: {theirs})"
    with pytest.raises(LedgerBrokenError, match=re.escape(expected)):
        open_note(note.encode(), OURS.verifier)


def test_one_signature_given_twice_is_refused() -> None:
    twice = NOTE + NOTE.removeprefix(CHECKPOINT.to_text() + "\n")
    with pytest.raises(LedgerBrokenError, match="got 2"):
        open_note(twice.encode(), OURS.verifier)


def test_a_key_of_the_same_name_but_other_bytes_does_not_count() -> None:
    imposter = VerifierKey(name=OURS.verifier.name, public=THEIRS.verifier.public)
    note = sign_note(CHECKPOINT.to_text(), imposter, THEIRS.sign)
    with pytest.raises(LedgerBrokenError, match=r"expected one signature by .* got 0"):
        open_note(note.encode(), OURS.verifier)


def test_a_checkpoint_of_another_log_is_refused_though_we_signed_it() -> None:
    other = Checkpoint(origin="example.com/log", size=7, root=EMPTY_ROOT)
    with pytest.raises(LedgerBrokenError, match=r"expected origin .* got 'example\.com/log'"):
        open_checkpoint(signed(other.to_text()).encode(), OURS.verifier)


ROOT = base64.b64encode(EMPTY_ROOT).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"log\n7\n{ROOT}",
        f"log\n7\n{ROOT}\nextension\n",
        f"\n7\n{ROOT}\n",
        f"log\n07\n{ROOT}\n",
        f"log\n-7\n{ROOT}\n",
        f"log\n+7\n{ROOT}\n",
        f"log\n\u0667\n{ROOT}\n",
        f"log\n{'9' * 20}\n{ROOT}\n",
        f"log\n7\n{ROOT[:-1]}\n",
        f"log\n7\n{ROOT[:-2]}\n",
        f"log\n7\n{base64.b64encode(b'short').decode()}\n",
    ],
)
def test_other_lines_are_not_a_checkpoint(text: str) -> None:
    with pytest.raises(LedgerBrokenError, match=r"^checkpoint: "):
        parse_checkpoint(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected text, an empty line and signatures"),
        (b"garbage", "expected text, an empty line and signatures"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"text\n\n- name c2ln\n", "a signature line is malformed"),
        ("text\n\n\u2014 name c2ln\n".encode(), "a signature line is malformed"),
        ("text\n\n\u2014 na+me c2lnbmF0dXJl\n".encode(), "a signature line is malformed"),
        ("text\n\n\u2014 name c2lnbmF0dXJm=\n".encode(), "a signature line is malformed"),
        ("te\0xt\n\n\u2014 name c2lnbmF0dXJl\n".encode(), "expected text"),
        (b"x" * (MAX_NOTE + 1), f"expected at most {MAX_NOTE} bytes"),
        (
            b"text\n\n" + "\u2014 name c2lnbmF0dXJl\n".encode() * (MAX_SIGNATURES + 1),
            f"expected at most {MAX_SIGNATURES} signatures",
        ),
    ],
)
def test_what_is_not_a_note_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(LedgerBrokenError, match=message):
        open_note(data, OURS.verifier)


@pytest.mark.parametrize("text", ["", "no newline", "tab\there\n", "nul\0\n", "cr\r\n"])
def test_text_that_no_note_can_hold_is_not_signed(text: str) -> None:
    with pytest.raises(InputError, match=r"^note: "):
        signed(text)


def test_a_verifier_key_reads_back() -> None:
    assert parse_vkey(OURS.verifier.to_text()) == OURS.verifier


VKEY = OURS.verifier.to_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected name"),
        ("name", "expected name"),
        (VKEY + "\n", "expected name"),
        (VKEY.replace("sealed", "sea led"), "expected name"),
        (VKEY[:-4], "expected an Ed25519 key"),
        (VKEY.replace("+AY", "+Ao"), "expected an Ed25519 key"),
        (VKEY.replace("sealed", "Sealed"), "expected id"),
    ],
)
def test_another_spelling_of_a_verifier_key_is_refused(text: str, message: str) -> None:
    assert text != VKEY
    with pytest.raises(InputError, match=f"verifier key: {message}"):
        parse_vkey(text)
