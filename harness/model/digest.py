"""A digest: `sha256:` and 64 lower-case hex digits, over exact bytes.

The one algorithm is SHA-256 (as in OCI digests and in-toto's DigestSet); a closed set of one
means that no message can ask for a weaker one.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType

from harness.errors import InputError

Digest = NewType("Digest", str)

_FORM = re.compile(r"sha256:[0-9a-f]{64}")
_SHORT = re.compile(r"(?:sha256:)?[0-9a-f]{12,64}")

PREFIX = "sha256:"


def digest_of(data: bytes) -> Digest:
    """Hash exact bytes."""
    return Digest(PREFIX + hashlib.sha256(data).hexdigest())


def digest_from_hex(hex_digits: str) -> Digest:
    """Wrap 64 hex digits.

    Raises:
        InputError: not 64 lower-case hex digits.
    """
    return parse_digest(PREFIX + hex_digits)


def parse_digest(text: object) -> Digest:
    """Check the spelling of a full digest; any other type of value is refused too.

    Raises:
        InputError: any other spelling, a shortened one included.
    """
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise InputError(f"digest: expected sha256: and 64 hex digits, got {text!r:.100}")
    return Digest(text)


def parse_given_digest(text: str) -> Digest:
    """Read a full digest as a person types it: with or without `sha256:`.

    Raises:
        InputError: shortened or malformed; signing and applying take full hashes only.
    """
    full = text if text.startswith(PREFIX) else PREFIX + text
    if _FORM.fullmatch(full):
        return Digest(full)
    if _SHORT.fullmatch(text):
        raise InputError(
            f"hash: expected all 64 hex digits, got {len(text.removeprefix(PREFIX))}",
            hint="a hash may be shortened to look at something, never to sign, run or apply it",
        )
    raise InputError(f"hash: expected 64 hex digits, got {text!r:.100}")


def is_full_digest(text: str) -> bool:
    """Tell whether text is a full digest, with or without `sha256:`."""
    return _FORM.fullmatch(PREFIX + text.removeprefix(PREFIX)) is not None


def is_short_digest(text: str) -> bool:
    """Tell whether text could name a digest by 12 or more of its hex digits."""
    return _SHORT.fullmatch(text) is not None


def short(digest: str) -> str:
    """Return the first 12 hex digits, for showing."""
    return digest.removeprefix(PREFIX)[:12]
