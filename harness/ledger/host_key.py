"""The host's own key: an Ed25519 key with the name under which it signs. No files.

The name is the log's origin: `sealed-harness/` and 16 hex digits of SHA-256 over the public key of
the log's first key. A key that takes over by rotation keeps the name, so that the log stays the
same log; its id, four bytes over name and key, tells the two apart (c2sp.org/signed-note).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from harness.errors import LedgerBrokenError
from harness.ledger.note import VerifierKey

ORIGIN = "sealed-harness"

LOST = (
    "put host/ back from a backup; only when the key is lost for good: `harness key renew --lost`"
)
"""What to do when the key is not there as it was made."""

_NAME_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """A key that signs this host's checkpoints.

    Attributes:
        private: the Ed25519 private key.
        verifier: the public half with the name it signs under.
    """

    private: Ed25519PrivateKey = field(repr=False)
    verifier: VerifierKey

    def sign(self, data: bytes) -> bytes:
        """Return the 64 bytes of an Ed25519 signature."""
        return self.private.sign(data)

    def to_pem(self) -> bytes:
        """Return the private key as PKCS #8 PEM without a passphrase."""
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def origin_of(public: bytes) -> str:
    """Return the name of a log whose first key this is."""
    return f"{ORIGIN}/{hashlib.sha256(public).hexdigest()[:_NAME_DIGITS]}"


def host_key_of(private: Ed25519PrivateKey, *, name: str = "") -> HostKey:
    """Name a private key.

    Args:
        private: the key.
        name: of the log whose key it becomes; a log of its own when empty.
    """
    public = private.public_key().public_bytes_raw()
    verifier = VerifierKey(name=name or origin_of(public), public=public)
    return HostKey(private=private, verifier=verifier)


def new_host_key(*, name: str = "") -> HostKey:
    """Make a key, for the log of this name; for a new log when empty."""
    return host_key_of(Ed25519PrivateKey.generate(), name=name)


def parse_pem(pem: bytes, file: str) -> Ed25519PrivateKey:
    """Read a private key.

    Args:
        pem: PKCS #8 PEM without a passphrase.
        file: what to call it in messages.

    Raises:
        LedgerBrokenError: anything else.
    """
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise LedgerBrokenError(f"host key: {file} is not a PKCS #8 PEM key", hint=LOST) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise LedgerBrokenError(f"host key: {file} is not an Ed25519 key", hint=LOST)
    return private
