"""Host keys in memory, for tests of the ledger that are not about key files."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.errors import LedgerBrokenError
from harness.ledger.host_key import HostKey, host_key_of
from harness.ledger.note import VerifierKey


def key_of(seed: int) -> HostKey:
    """Return the key whose private half is 32 times one byte."""
    return host_key_of(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


class MemoryKeys:
    """One key and the one after it, as `KeyFolder` keeps them on disk.

    Attributes:
        key: the key in force; None when both its halves are lost.
        is_lost: only its private half is lost.
    """

    def __init__(self, key: HostKey | None) -> None:
        self.key = key
        self.next: HostKey | None = None
        self.is_lost = False

    def known(self) -> VerifierKey | None:
        return self.key.verifier if self.key else None

    def verifiers(self) -> tuple[VerifierKey, ...]:
        return tuple(key.verifier for key in (self.key, self.next) if key)

    def signer(self) -> HostKey:
        if self.key is None or self.is_lost:
            raise LedgerBrokenError("host key: is lost")
        return self.key

    def prepare(self, key: HostKey) -> None:
        self.next = key

    def pending(self) -> HostKey | None:
        return self.next

    def switch(self) -> None:
        self.key, self.next, self.is_lost = self.next, None, False

    def discard(self) -> None:
        self.next = None
