"""Whose key a file holds: read without a passphrase and without a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from harness.errors import HarnessError, InputError
from harness.governance.sign import MAX_KEY_FILE, read_public_key, sign_statement
from tests.fakes.ssh_signer import make_signer

SIGNER = make_signer(1)


def write_key(path: Path, *, mode: int = 0o600) -> Path:
    lock = form.NoEncryption()
    path.write_bytes(
        SIGNER.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, lock)
    )
    path.chmod(mode)
    return path


def test_the_public_half_is_read_from_either_file(tmp_path: Path) -> None:
    private = write_key(tmp_path / "key")
    public = tmp_path / "key.pub"
    public.write_text(f"{SIGNER.public_text} somebody@somewhere\n")
    assert read_public_key(private).blob == SIGNER.blob
    assert read_public_key(public).blob == SIGNER.blob


def test_a_private_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    private = write_key(tmp_path / "key", mode=0o644)
    with pytest.raises(InputError, match="expected mode 0600, got 0644: others can read it"):
        read_public_key(private)


def refused(path: Path) -> HarnessError:
    with pytest.raises(InputError) as caught:
        sign_statement(b"x", gate="plan", key=path, environment={}, interactive=False)
    return caught.value


def test_what_is_not_a_key_is_refused_before_any_process_starts(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "missing").message
    assert "is not a file" in refused(tmp_path).message
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "is not a file" in refused(fifo).message
    text = tmp_path / "text"
    for content, message in (
        ("", "is not an SSH key file"),
        ("hello", "is not an SSH key file"),
        ("hello world", "expected type ssh-ed25519 or sk-"),
        ("x" * (MAX_KEY_FILE + 1), f"at most {MAX_KEY_FILE} bytes"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "magic: expected 15 bytes, got 3"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\n!\n", "is not base64"),
    ):
        text.write_text(content)
        text.chmod(0o600)
        assert message in refused(text).message


def test_another_kind_of_key_is_refused_with_the_way_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    other = ec.generate_private_key(ec.SECP256R1())
    for layout, message in (
        (form.PrivateFormat.OpenSSH, "got 'ecdsa-sha2-nistp256'"),
        (form.PrivateFormat.PKCS8, "expected OpenSSH's own format"),
    ):
        path.write_bytes(other.private_bytes(form.Encoding.PEM, layout, form.NoEncryption()))
        path.chmod(0o600)
        error = refused(path)
        assert message in error.message
        assert "ssh-keygen -t ed25519" in error.hint
