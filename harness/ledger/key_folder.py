"""The key files of the host folder: one key, and while a change is under way the one after it.

    host/key.pem     private, PKCS #8 PEM without a passphrase, mode 0600
    host/key.vkey    its public half as a C2SP verifier key, for whoever checks us
    host/next.pem    private, of the key that takes over
    host/next.vkey   its public half

Rules:
    * A file that others can read, that belongs to somebody else, or that is not a plain file is
      refused, never repaired: it may be known to others already.
    * `key.vkey` decides which key is the host's. A private key that is missing or another one is
      refused when something has to be signed; reading needs only the public half.
    * A key is made once, before the ledger begins. Beside a ledger only a change makes one.
    * A change ends with the rename of `next.vkey`; the old private key is overwritten after it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.errors import InputError, LedgerBrokenError, StateError
from harness.ledger.host_key import LOST, HostKey, host_key_of, new_host_key, parse_pem
from harness.ledger.note import VerifierKey, parse_vkey
from harness.store.durable import rename, state_error, sync_folder, write_durably
from harness.store.lock import hold_lock

PRIVATE = "key.pem"
PUBLIC = "key.vkey"
NEXT_PRIVATE = "next.pem"
NEXT_PUBLIC = "next.vkey"

_MAX_FILE = 4096
_WAIT_SECONDS = 10.0


class KeyFolder:
    """The keys of one host.

    Args:
        root: `host/` in the state folder; it exists.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def make_first(self) -> None:
        """Make the key of a new host; nothing when there is one.

        The caller has seen that no ledger has begun: beside one, a new key would be another host.

        Raises:
            StateError: a file's owner or mode is wrong, or it can't be read or written.
            LedgerBrokenError: there is a private key already, and it is malformed.
        """
        if self.known() is not None:
            return
        busy = "host key: another command is making it and does not end"
        with hold_lock(self.root / "lock", wait_seconds=_WAIT_SECONDS, busy=busy):
            if self.known() is not None:
                return
            pem = self._read(PRIVATE)
            key = new_host_key() if pem is None else host_key_of(parse_pem(pem, PRIVATE))
            if pem is None:
                write_durably(self.root / PRIVATE, key.to_pem())
            write_durably(self.root / PUBLIC, _public_text(key))

    def known(self) -> VerifierKey | None:
        """Return the public half of the host's key; None when it is missing.

        Raises:
            StateError: the file's owner or mode is wrong, or it can't be read.
            LedgerBrokenError: it is no verifier key.
        """
        return self._read_public(PUBLIC)

    def verifiers(self) -> tuple[VerifierKey, ...]:
        """Return the keys that may have signed the checkpoint: the host's, and the next one's.

        Raises:
            StateError: a file's owner or mode is wrong, or it can't be read.
            LedgerBrokenError: the public half is missing or malformed.
        """
        keys = (self.known(), self._read_public(NEXT_PUBLIC))
        found = tuple(key for key in keys if key is not None)
        if not found:
            raise LedgerBrokenError(f"host key: {PUBLIC} is missing beside a ledger", hint=LOST)
        return found

    def signer(self) -> HostKey:
        """Return the host's key with its private half.

        Raises:
            StateError: a file's owner or mode is wrong, or it can't be read.
            LedgerBrokenError: a half is missing or malformed, or the halves do not fit.
        """
        public = self.known()
        pem = self._read(PRIVATE)
        if public is None:
            raise LedgerBrokenError(f"host key: {PUBLIC} is missing beside a ledger", hint=LOST)
        if pem is None:
            raise LedgerBrokenError(
                f"host key: {PUBLIC} is there, but {PRIVATE} is missing", hint=LOST
            )
        key = host_key_of(parse_pem(pem, PRIVATE), name=public.name)
        if key.verifier != public:
            raise LedgerBrokenError(
                f"host key: {PRIVATE} is not the private half of {PUBLIC}", hint=LOST
            )
        return key

    # ---- a change ----

    def prepare(self, key: HostKey) -> None:
        """Lay down the key that will take over.

        Raises:
            StateError: the disk is full, or the folder can't be written.
        """
        self.discard()
        write_durably(self.root / NEXT_PRIVATE, key.to_pem())
        write_durably(self.root / NEXT_PUBLIC, _public_text(key))

    def pending(self) -> HostKey | None:
        """Return the key that was to take over when a process died; None when there is none.

        What the files alone can settle is settled: a private half that was laid down without its
        public one goes, and one whose public half has taken over follows it.

        Raises:
            StateError: a file's owner or mode is wrong, or it can't be read or moved.
            LedgerBrokenError: a file is malformed.
        """
        pem, public = self._read(NEXT_PRIVATE), self._read_public(NEXT_PUBLIC)
        if pem is None:
            return None
        private = parse_pem(pem, NEXT_PRIVATE)
        if public is not None:
            return host_key_of(private, name=public.name)
        current = self.known()
        if current is not None and current.public == private.public_key().public_bytes_raw():
            self._take(NEXT_PRIVATE, PRIVATE)
        else:
            self.discard()
        return None

    def switch(self) -> None:
        """Make the next key the host's; the old private key is gone then.

        Raises:
            StateError: the folder can't be written; the next command goes on.
        """
        self._take(NEXT_PUBLIC, PUBLIC)
        self._take(NEXT_PRIVATE, PRIVATE)

    def discard(self) -> None:
        """Remove a next key that the ledger never named, and torn writes of one.

        Raises:
            StateError: the folder can't be written.
        """
        try:
            for name in (NEXT_PUBLIC, NEXT_PRIVATE):
                (self.root / name).unlink(missing_ok=True)
            for torn in self.root.glob(".next.*"):
                torn.unlink()
        except OSError as error:
            raise state_error("remove a key that was never used", error) from error
        sync_folder(self.root)

    def _take(self, source: str, target: str) -> None:
        try:
            rename(self.root / source, self.root / target)
        except OSError as error:
            raise state_error(f"rename host/{source}", error) from error
        sync_folder(self.root)

    # ---- files ----

    def _read_public(self, name: str) -> VerifierKey | None:
        data = self._read(name)
        if data is None:
            return None
        text = data.decode("ascii", "replace")
        try:
            key = parse_vkey(text.removesuffix("\n"))
        except InputError as error:
            raise LedgerBrokenError(
                f"host key: host/{name} is malformed",
                hint="put the verifier key there that you gave away, or remove the file when it is "
                "lost, too",
            ) from error
        return key

    def _read(self, name: str) -> bytes | None:
        """Read a small file of ours that nobody else may touch; None when it is missing."""
        try:
            # O_NONBLOCK: a FIFO in its place must not hang the command.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(self.root / name, flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise state_error(f"read host/{name}", error) from error
        try:
            _require_private(name, os.fstat(descriptor))
            return os.read(descriptor, _MAX_FILE)
        except OSError as error:
            raise state_error(f"read host/{name}", error) from error
        finally:
            os.close(descriptor)


def _public_text(key: HostKey) -> bytes:
    return key.verifier.to_text().encode() + b"\n"


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
