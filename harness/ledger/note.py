"""Signed notes, verifier keys and checkpoints in the formats of C2SP. Pure.

Rules (c2sp.org/signed-note, c2sp.org/tlog-checkpoint):
    * A note is text, an empty line, and signature lines: an em dash, a space, the key's name, a
      space, and base64 of the four bytes of the key id followed by the signature.
    * Signatures by keys we do not know are passed over: a witness may add its own. Ours must be
      there once and must be right.
    * Base64 has one spelling: standard alphabet, padded, unused bits zero.
    * A checkpoint has exactly three lines: origin, size, base64 of the root. The format lets
      others add lines; our logs never do, so more lines are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from harness.errors import InputError, LedgerBrokenError
from harness.ledger.merkle import HASH_SIZE

ED25519 = b"\x01"
"""The note format's type byte of an Ed25519 key."""

PUBLIC_KEY_SIZE = 32
KEY_ID_SIZE = 4
MAX_NOTE = 65_536
MAX_SIGNATURES = 64

_DASH = "\N{EM DASH} "
_NAME = re.compile(r"[^\s+]+")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierKey:
    """A public key with its name: what a verifier has to know of a log.

    Attributes:
        name: the key's name, without spaces or plus signs; a log's origin.
        public: the 32 bytes of the Ed25519 public key.
    """

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """Return the four bytes that a signature line begins with."""
        return hashlib.sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:4]

    def to_text(self) -> str:
        """Return the key's one-line spelling: `name+id+base64`."""
        return f"{self.name}+{self.key_id.hex()}+{_encode(ED25519 + self.public)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a log commits to.

    Attributes:
        origin: the log's name.
        size: number of entries.
        root: the Merkle root over them.
    """

    origin: str
    size: int
    root: bytes

    def to_text(self) -> str:
        """Return the three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{_encode(self.root)}\n"


def parse_vkey(text: str) -> VerifierKey:
    """Read a verifier key's one-line spelling.

    Raises:
        InputError: another form, another key type, or an id that does not fit the key.
    """
    name, _, rest = text.partition("+")
    hex_id, _, coded = rest.partition("+")
    raw = _decode(coded)
    if not _NAME.fullmatch(name) or not raw:
        raise InputError(f"verifier key: expected name+id+base64, got {text!r:.200}")
    if raw[:1] != ED25519 or len(raw) != 1 + PUBLIC_KEY_SIZE:
        raise InputError("verifier key: expected an Ed25519 key (type 1, 32 bytes)")
    key = VerifierKey(name=name, public=raw[1:])
    if hex_id != key.key_id.hex():
        raise InputError(f"verifier key: expected id {key.key_id.hex()}, got {hex_id!r:.40}")
    return key


def sign_note(text: str, key: VerifierKey, sign: Callable[[bytes], bytes]) -> str:
    """Return a note: the text with one signature.

    Args:
        text: lines, each ended by a newline.
        key: whose signature it is.
        sign: makes an Ed25519 signature over bytes.

    Raises:
        InputError: the text does not end in a newline, or holds control characters.
    """
    if not text.endswith("\n") or _CONTROLS.search(text):
        raise InputError("note: expected lines ended by newlines, without control characters")
    return f"{text}\n{_signature_line(text, key, sign)}"


def cosign_note(note: str, key: VerifierKey, sign: Callable[[bytes], bytes]) -> str:
    """Return a note with one more signature over the same text.

    Raises:
        LedgerBrokenError: it is not a signed note.
    """
    return note + _signature_line(note_text(note.encode()), key, sign)


def note_text(data: bytes) -> str:
    """Return what a note says, its signatures not looked at: the caller must not believe it.

    Raises:
        LedgerBrokenError: not a note.
    """
    return _split_note(data)[0]


def keep_signature(data: bytes, key: VerifierKey) -> str:
    """Return a note with the signatures of one key alone, which are not looked at.

    Raises:
        LedgerBrokenError: not a note.
    """
    text, signatures = _split_note(data)
    lines = [
        f"{_DASH}{name} {_encode(raw)}\n"
        for name, raw in signatures
        if name == key.name and raw[:KEY_ID_SIZE] == key.key_id
    ]
    return "\n".join((text, "".join(lines)))


def open_note(data: bytes, key: VerifierKey) -> str:
    """Verify a note and return its text.

    Args:
        data: the note's exact bytes.
        key: the key whose signature must be there.

    Raises:
        LedgerBrokenError: not a note, not signed by the key, or the signature is wrong.
    """
    text, signatures = _split_note(data)
    mine = [raw for name, raw in signatures if name == key.name and raw[:4] == key.key_id]
    if len(mine) != 1:
        ids = ", ".join(sorted({f"{name}+{raw[:4].hex()}" for name, raw in signatures}))
        raise LedgerBrokenError(
            f"checkpoint: expected one signature by {key.name}+{key.key_id.hex()}, "
            f"got {len(mine)} (signers: {ids})"
        )
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(mine[0][4:], text.encode())
    except (InvalidSignature, ValueError) as error:
        raise LedgerBrokenError(f"checkpoint: signature by {key.name} is wrong") from error
    return text


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the three lines of a checkpoint.

    Raises:
        LedgerBrokenError: other lines.
    """
    lines = text.split("\n")
    if len(lines) != 4 or lines[3]:  # noqa: PLR2004 - three lines, each ended by a newline
        raise LedgerBrokenError("checkpoint: expected three lines: origin, size, root")
    origin, size, coded, _ = lines
    root = _decode(coded)
    if not origin or not _SIZE.fullmatch(size) or root is None or len(root) != HASH_SIZE:
        raise LedgerBrokenError("checkpoint: origin, size or root is malformed")
    return Checkpoint(origin=origin, size=int(size), root=root)


def open_checkpoint(data: bytes, key: VerifierKey) -> Checkpoint:
    """Verify a signed checkpoint of the log that the key is named for.

    Raises:
        LedgerBrokenError: not a checkpoint, of another log, or not signed by the key.
    """
    checkpoint = parse_checkpoint(open_note(data, key))
    if checkpoint.origin != key.name:
        raise LedgerBrokenError(
            f"checkpoint: expected origin {key.name}, got {checkpoint.origin!r:.100}"
        )
    return checkpoint


def _signature_line(text: str, key: VerifierKey, sign: Callable[[bytes], bytes]) -> str:
    return f"{_DASH}{key.name} {_encode(key.key_id + sign(text.encode()))}\n"


def _split_note(data: bytes) -> tuple[str, list[tuple[str, bytes]]]:
    if len(data) > MAX_NOTE:
        raise LedgerBrokenError(f"checkpoint: expected at most {MAX_NOTE} bytes, got {len(data)}")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LedgerBrokenError("checkpoint: is not UTF-8 text") from error
    text, blank, rest = whole.rpartition("\n\n")
    if not blank or not rest.endswith("\n") or _CONTROLS.search(whole):
        raise LedgerBrokenError("checkpoint: expected text, an empty line and signatures")
    lines = rest.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise LedgerBrokenError(
            f"checkpoint: expected at most {MAX_SIGNATURES} signatures, got {len(lines)}"
        )
    return text + "\n", [_parse_signature(line) for line in lines]


def _parse_signature(line: str) -> tuple[str, bytes]:
    name, _, coded = line.removeprefix(_DASH).partition(" ")
    raw = _decode(coded)
    if (
        not line.startswith(_DASH)
        or not _NAME.fullmatch(name)
        or raw is None
        or len(raw) <= KEY_ID_SIZE
    ):
        raise LedgerBrokenError("checkpoint: a signature line is malformed")
    return name, raw


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _encode(raw) == text else None
