"""SSH public keys that may sign: Ed25519, in software or on a FIDO device.

Rules:
    * Two types only, `ssh-ed25519` (RFC 8709) and `sk-ssh-ed25519@openssh.com` (OpenSSH
      PROTOCOL.u2f). The set is closed, so no message can ask for a weaker one.
    * One spelling: strict base64, a blob whose own type is the one written before it, no byte
      left over.
    * A key of low order is refused: signatures that everybody can make pass under it. So is a
      y-coordinate beyond the field, a second spelling of another key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from harness.errors import InputError
from harness.governance.ssh_wire import WireReader

ED25519 = "ssh-ed25519"
SK_ED25519 = "sk-ssh-ed25519@openssh.com"
KEY_TYPES = (ED25519, SK_ED25519)
MAKE_A_KEY = "ssh-keygen -t ed25519, or -t ed25519-sk for a key on a FIDO device"

KEY_BYTES = 32

_FIELD = 2**255 - 19
_Y_MASK = 2**255 - 1
# The points of order 8 double to one with y = 0, so x^2 = -y^2, and with the curve's equation
# d*y^4 + 2*y^2 - 1 = 0: this y and its negative.
_Y_OF_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
# Each is one or two encodings of y and two of the sign: 14 encodings in all (C2SP CCTV, ed25519).
_LOW_ORDER_Y = frozenset((0, 1, _FIELD - 1, _Y_OF_ORDER_8, _FIELD - _Y_OF_ORDER_8))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A public key that may sign.

    Attributes:
        type: `ssh-ed25519` or `sk-ssh-ed25519@openssh.com`.
        point: the 32 bytes of the Ed25519 point.
        application: what a FIDO key is bound to, such as `ssh:`; empty for a key in software.
        blob: the exact wire encoding; two keys are one when their points are equal.
    """

    type: str
    point: bytes
    application: bytes
    blob: bytes

    @property
    def on_device(self) -> bool:
        """Tell whether the key claims to live on a FIDO device."""
        return self.type == SK_ED25519

    @property
    def fingerprint(self) -> str:
        """Return `SHA256:...`, as `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest())
        return "SHA256:" + digest.decode("ascii").rstrip("=")


def parse_key_blob(blob: bytes) -> PublicKey:
    """Read a public key's wire encoding.

    Raises:
        InputError: another type, a wrong length, bytes left over, or a point of low order.
    """
    reader = WireReader(blob, "public key")
    key_type = reader.string("type").decode("ascii", "replace")
    if key_type not in KEY_TYPES:
        raise refused_type(key_type)
    point = reader.string("point")
    application = reader.string("application") if key_type == SK_ED25519 else b""
    reader.finish()
    if len(point) != KEY_BYTES:
        raise InputError(f"public key: expected {KEY_BYTES} bytes, got {len(point)}")
    _refuse_weak(point)
    return PublicKey(type=key_type, point=point, application=application, blob=blob)


def parse_key_text(key_type: str, encoded: str) -> PublicKey:
    """Read the two words of a public key line: its type and its base64.

    Raises:
        InputError: as `parse_key_blob`; not base64; or the two words disagree.
    """
    if key_type not in KEY_TYPES:
        raise refused_type(key_type)
    key = parse_key_blob(decode_base64(encoded, "public key"))
    if key.type != key_type:
        raise InputError(f"public key: expected type {key_type}, got {key.type} inside")
    return key


def decode_base64(text: str, what: str) -> bytes:
    """Read base64 in its one spelling (RFC 4648, section 3.5: no stray bits, padding in full).

    Raises:
        InputError: any other spelling.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{what}: is not base64") from error
    if base64.b64encode(raw).decode("ascii") != text:
        raise InputError(f"{what}: is not in base64's one spelling")
    return raw


def refused_type(key_type: str) -> InputError:
    """Return the error for a key of another type; it says which are accepted."""
    return InputError(
        f"public key: expected type {' or '.join(KEY_TYPES)}, got {key_type!r:.60}",
        hint=f"make a key with: {MAKE_A_KEY}",
    )


def verify_ed25519(point: bytes, signature: bytes, message: bytes) -> bool:
    """Tell whether an Ed25519 signature holds (RFC 8032, 5.1.7; S below the group order)."""
    try:
        Ed25519PublicKey.from_public_bytes(point).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _refuse_weak(point: bytes) -> None:
    y = int.from_bytes(point, "little") & _Y_MASK
    if y % _FIELD in _LOW_ORDER_Y:
        raise InputError(
            "public key: is a point of low order, under which anybody can sign",
            hint=f"make a key with: {MAKE_A_KEY}",
        )
    if y >= _FIELD:
        raise InputError("public key: is not in its one encoding (y is beyond the field)")
