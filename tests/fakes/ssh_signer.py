"""An SSH key in memory that makes SSHSIG blobs, each field of which a test can bend.

With `application` set it plays a FIDO key (sk-ssh-ed25519@openssh.com): the same point, and the
flags and counter that such a device would sign along. A real device can't be had in a test; that
ssh-keygen accepts what this makes is shown in tests/integration.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.governance.ssh_wire import wire_string

ORDER = 2**252 + 27742317777372353535851937790883648493


@dataclass(frozen=True, slots=True, kw_only=True)
class Bent:
    """What to write instead of the right value; None leaves it right."""

    magic: bytes = b"SSHSIG"
    version: int = 1
    key_blob: bytes | None = None
    reserved: bytes = b""
    signed_reserved: bytes = b""
    hash: str = "sha512"
    inner_type: bytes | None = None
    add_order_to_s: bool = False
    trailing: bytes = b""
    inner_trailing: bytes = b""
    flags: int = 0x01


STRAIGHT = Bent()


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSigner:
    """A key pair; `application` makes it play a FIDO key."""

    private: Ed25519PrivateKey
    application: bytes = b""

    @property
    def type(self) -> str:
        return "sk-ssh-ed25519@openssh.com" if self.application else "ssh-ed25519"

    @property
    def blob(self) -> bytes:
        point = wire_string(self.private.public_key().public_bytes_raw())
        tail = wire_string(self.application) if self.application else b""
        return wire_string(self.type.encode()) + point + tail

    @property
    def public_text(self) -> str:
        return f"{self.type} {base64.b64encode(self.blob).decode()}"

    def sign(self, message: bytes, namespace: str, bent: Bent = STRAIGHT) -> bytes:
        return armour(self.sign_blob(message, namespace, bent))

    def sign_blob(self, message: bytes, namespace: str, bent: Bent = STRAIGHT) -> bytes:
        name = wire_string(namespace.encode())
        known = bent.hash in ("sha256", "sha512")
        hashed = hashlib.new(bent.hash if known else "sha512", message).digest()
        signed = (
            b"SSHSIG"
            + name
            + wire_string(bent.signed_reserved)
            + wire_string(bent.hash.encode())
            + wire_string(hashed)
        )
        return (
            bent.magic
            + bent.version.to_bytes(4, "big")
            + wire_string(self.blob if bent.key_blob is None else bent.key_blob)
            + name
            + wire_string(bent.reserved)
            + wire_string(bent.hash.encode())
            + wire_string(self._inner(signed, bent))
            + bent.trailing
        )

    def _inner(self, signed: bytes, bent: Bent) -> bytes:
        tail = b""
        if self.application:
            tail = bytes([bent.flags]) + (7).to_bytes(4, "big")
            application = hashlib.sha256(self.application).digest()
            signed = application + tail + hashlib.sha256(signed).digest()
        raw = self.private.sign(signed)
        if bent.add_order_to_s:
            s = int.from_bytes(raw[32:], "little") + ORDER
            raw = raw[:32] + s.to_bytes(32, "little")
        name = self.type.encode() if bent.inner_type is None else bent.inner_type
        return wire_string(name) + wire_string(raw) + tail + bent.inner_trailing


def make_signer(seed: int, *, application: bytes = b"") -> FakeSigner:
    """Return the key pair of a seed, the same each time."""
    secret = hashlib.sha256(f"signer {seed}".encode()).digest()
    return FakeSigner(private=Ed25519PrivateKey.from_private_bytes(secret), application=application)


def armour(blob: bytes) -> bytes:
    """Write a blob as ssh-keygen does: 70 characters a line."""
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join(
        ["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""]
    ).encode()
