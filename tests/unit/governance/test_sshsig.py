"""SSHSIG: what is accepted, and each refusal by its own message."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ApprovalInvalidError
from harness.governance.ssh_keys import PublicKey, parse_key_blob
from harness.governance.ssh_wire import wire_string
from harness.governance.sshsig import MAX_SIGNATURE, parse_sshsig, verify_sshsig
from tests.fakes.ssh_signer import STRAIGHT, Bent, FakeSigner, armour, make_signer

SOFT = make_signer(1)
FIDO = make_signer(2, application=b"ssh:")
MESSAGE = b"the exact bytes"
SPACE = "plan-approval@harness"


def key_of(blob: bytes) -> PublicKey:
    return parse_key_blob(blob)


@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
@pytest.mark.parametrize("signer", [SOFT, FIDO], ids=["software", "fido"])
def test_a_straight_signature_holds(signer: FakeSigner, hash_name: str) -> None:
    parsed = parse_sshsig(signer.sign(MESSAGE, SPACE, Bent(hash=hash_name)))
    verify_sshsig(parsed, MESSAGE, namespace=SPACE, key=key_of(signer.blob))
    assert parsed.key.on_device is (signer is FIDO)


@pytest.mark.parametrize(
    ("bent", "message"),
    [
        (Bent(magic=b"SSHSIX"), "expected the magic SSHSIG"),
        (Bent(version=2), "expected version 1, got 2"),
        (Bent(version=0), "expected version 1, got 0"),
        (Bent(reserved=b"x"), "expected an empty reserved field"),
        (Bent(hash="sha1"), "expected hash sha256 or sha512, got 'sha1'"),
        (Bent(inner_type=b"ssh-rsa"), "expected type ssh-ed25519, got 'ssh-rsa'"),
        (Bent(trailing=b"\0"), "expected its end, got 1 more bytes"),
        (Bent(inner_trailing=b"\0\0"), "expected its end, got 2 more bytes"),
        (Bent(key_blob=wire_string(b"ssh-rsa") + b"xx"), "got 'ssh-rsa'"),
        (Bent(key_blob=b"\xff\xff\xff\xff"), "expected 4294967295 bytes"),
        (Bent(key_blob=SOFT.blob + b"!"), "got 1 more bytes"),
    ],
)
def test_a_bent_blob_is_refused_by_name(bent: Bent, message: str) -> None:
    with pytest.raises(ApprovalInvalidError, match=message):
        parse_sshsig(SOFT.sign(MESSAGE, SPACE, bent))


def test_a_refused_type_says_which_are_accepted_and_how_to_make_one() -> None:
    blob = wire_string(b"ecdsa-sha2-nistp256") + b"rest"
    with pytest.raises(ApprovalInvalidError, match="expected type ssh-ed25519 or sk-") as caught:
        parse_sshsig(SOFT.sign(MESSAGE, SPACE, Bent(key_blob=blob)))
    assert "ssh-keygen -t ed25519" in caught.value.hint


ARMOURED = SOFT.sign(MESSAGE, SPACE)


@pytest.mark.parametrize(
    "armoured",
    [
        b"",
        ARMOURED + b"\n",
        ARMOURED + ARMOURED,
        b"\n" + ARMOURED,
        ARMOURED.replace(b"\n", b"\r\n"),
        ARMOURED.replace(b"BEGIN SSH", b"BEGIN  SSH"),
        ARMOURED.replace(b"-----END", b"----END"),
        ARMOURED.replace(b"\n", b"\n ", 1),
        ARMOURED.replace(b"\n", b"\n\n", 1),
        ARMOURED.replace(b"\n", b"", 1),
        ARMOURED.decode().encode("utf-16"),
    ],
)
def test_another_armour_is_refused(armoured: bytes) -> None:
    with pytest.raises(ApprovalInvalidError, match="expected one block"):
        parse_sshsig(armoured)


def test_base64_has_one_spelling() -> None:
    assert base64.b64decode("QR==") == base64.b64decode("QQ==")
    stray_bits = b"-----BEGIN SSH SIGNATURE-----\nQR==\n-----END SSH SIGNATURE-----\n"
    with pytest.raises(ApprovalInvalidError, match="one spelling"):
        parse_sshsig(stray_bits)


def test_size_is_limited_before_anything_is_read() -> None:
    with pytest.raises(ApprovalInvalidError, match=f"at most {MAX_SIGNATURE} bytes"):
        parse_sshsig(b"x" * (MAX_SIGNATURE + 1))


def test_another_namespace_key_or_message_is_refused() -> None:
    parsed = parse_sshsig(ARMOURED)
    key, other = key_of(SOFT.blob), key_of(make_signer(9).blob)
    with pytest.raises(ApprovalInvalidError, match="expected namespace diff-approval@harness"):
        verify_sshsig(parsed, MESSAGE, namespace="diff-approval@harness", key=key)
    with pytest.raises(ApprovalInvalidError, match=r"expected key SHA256:.*, got SHA256:"):
        verify_sshsig(parsed, MESSAGE, namespace=SPACE, key=other)
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify_sshsig(parsed, MESSAGE + b"\n", namespace=SPACE, key=key)


def test_a_namespace_relabelled_after_signing_does_not_hold() -> None:
    blob = SOFT.sign_blob(MESSAGE, "diff-approval@harness")
    moved = armour(blob.replace(b"diff-approval@harness", b"plan-approval@harness"))
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify_sshsig(parse_sshsig(moved), MESSAGE, namespace=SPACE, key=key_of(SOFT.blob))


def test_s_beyond_the_group_order_is_refused() -> None:
    parsed = parse_sshsig(SOFT.sign(MESSAGE, SPACE, Bent(add_order_to_s=True)))
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify_sshsig(parsed, MESSAGE, namespace=SPACE, key=key_of(SOFT.blob))


@pytest.mark.parametrize("flags", [0x00, 0x04, 0xFE])
def test_a_fido_signature_without_presence_is_refused(flags: int) -> None:
    parsed = parse_sshsig(FIDO.sign(MESSAGE, SPACE, Bent(flags=flags)))
    with pytest.raises(ApprovalInvalidError, match="user-presence flag"):
        verify_sshsig(parsed, MESSAGE, namespace=SPACE, key=key_of(FIDO.blob))


def test_fido_flags_counter_and_application_are_signed() -> None:
    parsed = parse_sshsig(FIDO.sign(MESSAGE, SPACE))
    key = key_of(FIDO.blob)
    for other in (replace(parsed, flags=0x05), replace(parsed, counter=8)):
        with pytest.raises(ApprovalInvalidError, match="does not hold"):
            verify_sshsig(other, MESSAGE, namespace=SPACE, key=key)
    elsewhere = key_of(replace(FIDO, application=b"ssh:other").blob)
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify_sshsig(replace(parsed, key=elsewhere), MESSAGE, namespace=SPACE, key=elsewhere)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(SOFT.sign_blob(MESSAGE, SPACE)) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_of_the_blob_is_noticed(at: int, bit: int) -> None:
    blob = bytearray(SOFT.sign_blob(MESSAGE, SPACE, STRAIGHT))
    blob[at] ^= 1 << bit
    with pytest.raises(ApprovalInvalidError):
        verify_sshsig(
            parse_sshsig(armour(bytes(blob))), MESSAGE, namespace=SPACE, key=key_of(SOFT.blob)
        )


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_typed_refusal(data: bytes) -> None:
    for armoured in (data, armour(data), armour(b"SSHSIG\0\0\0\1" + data)):
        with pytest.raises(ApprovalInvalidError):
            parse_sshsig(armoured)
