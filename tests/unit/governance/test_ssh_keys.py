"""Public keys: two types, one encoding, no point under which everybody can sign."""

from __future__ import annotations

import base64

import pytest

from harness.errors import InputError
from harness.governance.ssh_keys import parse_key_blob, parse_key_text
from harness.governance.ssh_wire import wire_string
from tests.fakes.ssh_signer import make_signer

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def low_order_encodings() -> set[bytes]:
    """Return every encoding of the eight points whose order divides 8, from the curve itself."""
    encodings: set[bytes] = set()
    for y in _low_order_y():
        for spelling in (y, y + P):
            if spelling < 2**255:
                encodings |= {(spelling | sign << 255).to_bytes(32, "little") for sign in (0, 1)}
    return encodings


def _low_order_y() -> set[int]:
    # Doubling gives y = 0 where d*y^4 + 2*y^2 - 1 = 0; solve for y^2, then for y.
    found = {0, 1, P - 1}
    root = _sqrt((1 + D) % P)
    assert root is not None
    for square in ((-1 + root) * pow(D, -1, P) % P, (-1 - root) * pow(D, -1, P) % P):
        y = _sqrt(square)
        if y is not None and _sqrt(-square % P) is not None:
            found |= {y, P - y}
    return found


def _sqrt(value: int) -> int | None:
    root = pow(value, (P + 3) // 8, P)
    for candidate in (root, root * pow(2, (P - 1) // 4, P) % P):
        if candidate * candidate % P == value % P:
            return candidate
    return None


def blob_of(point: bytes) -> bytes:
    return wire_string(b"ssh-ed25519") + wire_string(point)


def test_there_are_fourteen_low_order_encodings_and_each_is_refused() -> None:
    encodings = low_order_encodings()
    assert len(encodings) == 14
    for point in encodings:
        with pytest.raises(InputError, match="low order"):
            parse_key_blob(blob_of(point))


def test_a_second_encoding_of_a_point_is_refused() -> None:
    with pytest.raises(InputError, match="not in its one encoding"):
        parse_key_blob(blob_of((P + 3).to_bytes(32, "little")))


def test_an_ordinary_key_is_read_whole() -> None:
    signer = make_signer(1)
    key = parse_key_text(*signer.public_text.split())
    assert key.blob == signer.blob
    assert key.point == signer.private.public_key().public_bytes_raw()
    assert not key.on_device
    fido = make_signer(1, application=b"ssh:")
    key = parse_key_text(*fido.public_text.split())
    assert (key.on_device, key.application) == (True, b"ssh:")


@pytest.mark.parametrize("key_type", ["ssh-rsa", "ecdsa-sha2-nistp256", "ssh-dss", "ssh-ed448"])
def test_another_type_is_refused_with_the_way_to_make_a_key(key_type: str) -> None:
    blob = base64.b64encode(wire_string(key_type.encode()) + b"more").decode()
    with pytest.raises(InputError, match=f"got '{key_type}'") as caught:
        parse_key_text(key_type, blob)
    assert "ssh-keygen -t ed25519" in caught.value.hint


def test_the_word_and_the_blob_must_agree() -> None:
    fido = make_signer(1, application=b"ssh:")
    with pytest.raises(InputError, match="expected type ssh-ed25519, got sk-ssh-ed25519"):
        parse_key_text("ssh-ed25519", base64.b64encode(fido.blob).decode())


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "expected 4 bytes, got 0"),
        (blob_of(b"short"), "expected 32 bytes, got 5"),
        (make_signer(1).blob + b"\0", "got 1 more bytes"),
        (wire_string(b"sk-ssh-ed25519@openssh.com") + wire_string(b"p" * 32), "application"),
    ],
)
def test_a_malformed_blob_is_refused(blob: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_key_blob(blob)


@pytest.mark.parametrize("text", ["AAA", "AAAA ", "AB==", "****", "é"])
def test_base64_has_one_spelling_for_keys_too(text: str) -> None:
    with pytest.raises(InputError, match="base64"):
        parse_key_text("ssh-ed25519", text)
