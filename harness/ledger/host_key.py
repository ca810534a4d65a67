"""The host's own key: Ed25519, made on first use, kept in the state folder.

    host/key.pem    PKCS #8 PEM without a passphrase, mode 0600
    host/key.vkey   the public half as a C2SP verifier key, for whoever checks us

Rules:
    * The key is made once, under a lock: two processes at once get the same one.
    * A key file that others can read, that belongs to somebody else, or that is not a plain file
      is refused, never repaired: it may be known to others already.
    * The public half is written after the private one. When it is there, it decides: a private
      key that is missing or another is refused. A new key would be a new host, and its ledger
      would no longer verify.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from harness.errors import LedgerBrokenError, StateError
from harness.ledger.note import VerifierKey
from harness.store.durable import state_error, write_durably
from harness.store.lock import hold_lock

PRIVATE_NAME = "key.pem"
PUBLIC_NAME = "key.vkey"
ORIGIN = "sealed-harness"

_MAX_FILE = 4096
_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """The key that signs this host's checkpoints.

    Attributes:
        private: the Ed25519 private key.
        verifier: the public half, named `sealed-harness/<16 hex digits of its hash>`.
    """

    private: Ed25519PrivateKey = field(repr=False)
    verifier: VerifierKey

    def sign(self, data: bytes) -> bytes:
        """Return the 64 bytes of an Ed25519 signature."""
        return self.private.sign(data)


def host_key_of(private: Ed25519PrivateKey) -> HostKey:
    """Name a private key after its public half."""
    public = private.public_key().public_bytes_raw()
    name = f"{ORIGIN}/{hashlib.sha256(public).hexdigest()[:16]}"
    return HostKey(private=private, verifier=VerifierKey(name=name, public=public))


def load_host_key(folder: Path) -> HostKey:
    """Return the host's key, made on first use.

    Args:
        folder: `host/` in the state folder; it exists.

    Raises:
        StateError: the file's owner or mode is wrong, or it can't be read or written.
        LedgerBrokenError: the private key is missing, malformed, or not that of the public half.
    """
    key = _load(folder)
    if key is not None:
        return key
    busy = "host key: another command is making it and does not end"
    with hold_lock(folder / "lock", wait_seconds=_WAIT_SECONDS, busy=busy):
        return _load(folder) or _make(folder)


def _load(folder: Path) -> HostKey | None:
    """Return the key when both halves are there and fit; None when it is not made in full yet."""
    # The public half first: it is written last, so whoever sees it must see the private one.
    public = _read(folder / PUBLIC_NAME)
    pem = _read(folder / PRIVATE_NAME)
    if public is None:
        return None
    if pem is None:
        raise LedgerBrokenError(
            f"host key: {PUBLIC_NAME} is there, but {PRIVATE_NAME} is missing",
            hint="restore host/key.pem from a backup; a new key would be another host",
        )
    key = _parse(pem)
    if public != _public_text(key):
        raise LedgerBrokenError(
            f"host key: {PRIVATE_NAME} is not the private half of {PUBLIC_NAME}"
        )
    return key


def _make(folder: Path) -> HostKey:
    pem = _read(folder / PRIVATE_NAME)
    if pem is None:
        pem = Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        write_durably(folder / PRIVATE_NAME, pem)
    key = _parse(pem)
    write_durably(folder / PUBLIC_NAME, _public_text(key))
    return key


def _public_text(key: HostKey) -> bytes:
    return key.verifier.to_text().encode() + b"\n"


def _parse(pem: bytes) -> HostKey:
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise LedgerBrokenError(f"host key: {PRIVATE_NAME} is not a PKCS #8 PEM key") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise LedgerBrokenError(f"host key: {PRIVATE_NAME} is not an Ed25519 key")
    return host_key_of(private)


def _read(path: Path) -> bytes | None:
    """Read a small file of ours that nobody else may touch; None when it is missing."""
    try:
        # O_NONBLOCK: a FIFO in its place must not hang the command.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise state_error(f"read host/{path.name}", error) from error
    try:
        _require_private(path.name, os.fstat(descriptor))
        return os.read(descriptor, _MAX_FILE)
    except OSError as error:
        raise state_error(f"read host/{path.name}", error) from error
    finally:
        os.close(descriptor)


def _require_private(name: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise StateError(f"host key: host/{name} is not a plain file")
    if found.st_uid != os.geteuid():
        raise StateError(
            f"host key: host/{name}: expected owner {os.geteuid()}, got {found.st_uid}"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise StateError(
            f"host key: host/{name}: expected mode 0600, got {mode:04o}",
            hint="others may have read or changed it; if you know they did not, give it mode 0600",
        )
