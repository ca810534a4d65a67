"""SSHSIG (OpenSSH PROTOCOL.sshsig): read an armoured signature strictly and verify it. Pure.

Rules:
    * Limits first: at most 16 KiB, one block, exact header and footer, base64 in one spelling.
    * Version 1, an empty `reserved`, hash sha256 or sha512, nothing left over.
    * The algorithm follows from the key that was enrolled, never from the message.
    * A FIDO signature must carry the user-presence flag.

`ssh-keygen -Y verify` accepts a little more: other armour layouts, text after the footer, version
0, bytes in `reserved`, S beyond the group order, and a FIDO signature without the flag. What is
accepted here is accepted there.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from harness.errors import ApprovalInvalidError, InputError
from harness.governance.ssh_keys import (
    PublicKey,
    decode_base64,
    parse_key_blob,
    verify_ed25519,
)
from harness.governance.ssh_wire import WireReader, wire_string

MAX_SIGNATURE = 16 * 1024
HASHES = ("sha256", "sha512")
USER_PRESENT = 0x01

_MAGIC = b"SSHSIG"
_VERSION = 1
_SIGNATURE_BYTES = 64
_ARMOUR = re.compile(
    r"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]{1,76}\n)+)-----END SSH SIGNATURE-----\n?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSignature:
    """A signature as read; nothing in it is trusted yet.

    Attributes:
        key: the public key the signature names.
        namespace: what the signature is for.
        hash: sha256 or sha512, over the message.
        raw: the 64 bytes of the Ed25519 signature.
        flags: FIDO flags, 0 for a key in software.
        counter: FIDO signature counter, 0 for a key in software.
    """

    key: PublicKey
    namespace: str
    hash: str
    raw: bytes
    flags: int
    counter: int


def parse_sshsig(armoured: bytes) -> SshSignature:
    """Read an armoured signature.

    Raises:
        ApprovalInvalidError: not one SSHSIG block in its exact form, or of a type not accepted.
    """
    encoded = _strip_armour(armoured)
    try:
        return _parse_blob(decode_base64(encoded, "signature"))
    except InputError as error:
        raise ApprovalInvalidError(error.message, hint=error.hint) from error


def verify_sshsig(
    signature: SshSignature, message: bytes, *, namespace: str, key: PublicKey
) -> None:
    """Check a signature over exact bytes.

    Args:
        signature: as read by `parse_sshsig`.
        message: the exact bytes that were signed.
        namespace: the namespace it must be for.
        key: the enrolled key it must be made with.

    Raises:
        ApprovalInvalidError: another namespace, another key, no presence flag, or a signature
            that does not hold over these bytes.
    """
    if signature.namespace != namespace:
        raise ApprovalInvalidError(
            f"signature: expected namespace {namespace}, got {signature.namespace!r:.80}"
        )
    if signature.key != key:
        raise ApprovalInvalidError(
            f"signature: expected key {key.fingerprint}, got {signature.key.fingerprint}"
        )
    if key.on_device and not signature.flags & USER_PRESENT:
        raise ApprovalInvalidError(
            "signature: expected the user-presence flag, got none: nobody touched the key",
            hint="sign again without `no-touch-required`, and touch the key",
        )
    if not verify_ed25519(key.point, signature.raw, _signed_bytes(signature, message)):
        raise ApprovalInvalidError("signature: does not hold over these bytes")


def _strip_armour(armoured: bytes) -> str:
    if len(armoured) > MAX_SIGNATURE:
        raise ApprovalInvalidError(
            f"signature: expected at most {MAX_SIGNATURE} bytes, got {len(armoured)}"
        )
    match = _ARMOUR.fullmatch(armoured.decode("ascii", "replace"))
    if match is None:
        raise ApprovalInvalidError(
            "signature: expected one block from BEGIN to END SSH SIGNATURE and nothing else",
            hint="give the file that `ssh-keygen -Y sign` wrote, as it wrote it",
        )
    return match[1].replace("\n", "")


def _parse_blob(blob: bytes) -> SshSignature:
    reader = WireReader(blob, "signature")
    if reader.take(len(_MAGIC), "magic") != _MAGIC:
        raise InputError("signature: expected the magic SSHSIG")
    if (version := reader.uint32("version")) != _VERSION:
        raise InputError(f"signature: expected version {_VERSION}, got {version}")
    key = parse_key_blob(reader.string("public key"))
    namespace = reader.string("namespace").decode("utf-8", "backslashreplace")
    if reader.string("reserved"):
        raise InputError("signature: expected an empty reserved field")
    hash_name = reader.string("hash").decode("ascii", "replace")
    if hash_name not in HASHES:
        raise InputError(f"signature: expected hash {' or '.join(HASHES)}, got {hash_name!r:.40}")
    inner = WireReader(reader.string("signature"), "signature")
    reader.finish()
    inner_type = inner.string("type").decode("ascii", "replace")
    if inner_type != key.type:
        raise InputError(f"signature: expected type {key.type}, got {inner_type!r:.60}")
    raw = inner.string("value")
    if len(raw) != _SIGNATURE_BYTES:
        raise InputError(f"signature: expected {_SIGNATURE_BYTES} bytes, got {len(raw)}")
    flags = inner.take(1, "flags")[0] if key.on_device else 0
    counter = inner.uint32("counter") if key.on_device else 0
    inner.finish()
    return SshSignature(
        key=key, namespace=namespace, hash=hash_name, raw=raw, flags=flags, counter=counter
    )


def _signed_bytes(signature: SshSignature, message: bytes) -> bytes:
    """Return what the key signed: PROTOCOL.sshsig section 3, and PROTOCOL.u2f around it."""
    signed = (
        _MAGIC
        + wire_string(signature.namespace.encode("utf-8"))
        + wire_string(b"")
        + wire_string(signature.hash.encode("ascii"))
        + wire_string(hashlib.new(signature.hash, message).digest())
    )
    if not signature.key.on_device:
        return signed
    return (
        hashlib.sha256(signature.key.application).digest()
        + bytes([signature.flags])
        + signature.counter.to_bytes(4, "big")
        + hashlib.sha256(signed).digest()
    )
