r"""Text that cannot drive a terminal: controls and hidden characters are shown, not sent.

Worker output, file names and comments are somebody else's bytes. `\n` and `\t` pass; every other
control, bidirectional or invisible character (Unicode categories Cc, Cf, Cs, Co, Zl, Zp) is
written as `\xNN` or `\uNNNN`, so that what is read is what is there.
"""

from __future__ import annotations

import codecs
import re

_KEEP = "\n\t"
_SUSPECT = re.compile(r"[^\x20-\x7e\n\t]")


def plain(text: str) -> str:
    """Return text with every character that is not plainly visible escaped."""
    return _SUSPECT.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    if character.isprintable() or character in _KEEP:
        return character
    code = ord(character)
    if code <= 0xFF:  # noqa: PLR2004 - two hex digits suffice
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


class PlainStream:
    r"""Turns a stream of bytes into plain text, piece by piece.

    A character split between two pieces is kept back until it is whole; bytes that are not UTF-8
    are shown as `\xNN`.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the plain text of the next bytes."""
        return plain(self._decode(data, final).replace("\r\n", "\n"))
