"""The host's key: made once, kept private, never replaced in silence."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from harness.errors import LedgerBrokenError, StateError
from harness.ledger.host_key import HostKey
from harness.ledger.key_folder import KeyFolder
from harness.ledger.note import parse_vkey


def load_host_key(folder: Path) -> HostKey:
    """Make the key when there is none, and return it."""
    keys = KeyFolder(folder)
    keys.make_first()
    return keys.signer()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_key_is_made_once_and_read_ever_after(tmp_path: Path) -> None:
    key = load_host_key(tmp_path)
    before = contents(tmp_path)
    again = load_host_key(tmp_path)
    assert again.verifier == key.verifier
    assert contents(tmp_path) == before


def test_only_the_owner_may_read_it_and_the_public_half_lies_beside(tmp_path: Path) -> None:
    key = load_host_key(tmp_path)
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert (tmp_path / "key.pem").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert parse_vkey((tmp_path / "key.vkey").read_text().rstrip("\n")) == key.verifier
    assert key.verifier.name.startswith("sealed-harness/")
    assert "private" not in repr(key)


def test_a_process_that_died_between_the_halves_is_finished(tmp_path: Path) -> None:
    key = load_host_key(tmp_path)
    (tmp_path / "key.vkey").unlink()
    assert load_host_key(tmp_path).verifier == key.verifier
    assert (tmp_path / "key.vkey").read_text() == key.verifier.to_text() + "\n"


@pytest.mark.parametrize("name", ["key.pem", "key.vkey"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_can_touch_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    load_host_key(tmp_path)
    (tmp_path / name).chmod(mode)
    before = contents(tmp_path)
    with pytest.raises(StateError, match=f"{name}: expected mode 0600, got {mode:04o}"):
        load_host_key(tmp_path)
    assert contents(tmp_path) == before


def test_a_key_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_host_key(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StateError, match="expected owner"):
        load_host_key(tmp_path)


def test_a_lost_private_key_is_not_replaced(tmp_path: Path) -> None:
    load_host_key(tmp_path)
    (tmp_path / "key.pem").unlink()
    with pytest.raises(LedgerBrokenError, match=r"key\.pem is missing"):
        load_host_key(tmp_path)
    assert not (tmp_path / "key.pem").exists()


def test_another_private_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    load_host_key(tmp_path / "one")
    load_host_key(tmp_path / "two")
    (tmp_path / "two" / "key.pem").replace(tmp_path / "one" / "key.pem")
    with pytest.raises(LedgerBrokenError, match=r"is not the private half of key\.vkey"):
        load_host_key(tmp_path / "one")


def test_what_is_not_an_open_ed25519_key_is_refused(tmp_path: Path) -> None:
    load_host_key(tmp_path)
    pem = tmp_path / "key.pem"
    good = load_pem_private_key(pem.read_bytes(), password=None)
    locked = BestAvailableEncryption(b"secret")
    other = generate_private_key(SECP256R1())
    for data, message in [
        (b"", "is not a PKCS #8 PEM key"),
        (b"garbage", "is not a PKCS #8 PEM key"),
        (good.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked), "is not a PKCS #8 PEM key"),
        (
            other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "is not an Ed25519 key",
        ),
    ]:
        pem.write_bytes(data)
        with pytest.raises(LedgerBrokenError, match=message):
            load_host_key(tmp_path)
        assert pem.read_bytes() == data


def test_a_link_a_fifo_or_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    load_host_key(tmp_path)
    pem = tmp_path / "key.pem"
    pem.rename(tmp_path / "elsewhere")
    pem.symlink_to("elsewhere")
    with pytest.raises(StateError, match=r"read host/key\.pem"):
        load_host_key(tmp_path)
    pem.unlink()
    os.mkfifo(pem, 0o600)
    with pytest.raises(StateError, match=r"key\.pem is not a plain file"):
        load_host_key(tmp_path)
    pem.unlink()
    pem.mkdir(0o700)
    with pytest.raises(StateError, match=r"key\.pem is not a plain file"):
        load_host_key(tmp_path)


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="lock"):
        load_host_key(tmp_path / "missing")
