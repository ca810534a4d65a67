"""The SSH wire encoding (RFC 4251, section 5): length-prefixed strings and big-endian integers.

A reader takes exactly what is there: a length beyond the end is refused before anything is cut,
and `finish` refuses bytes that are left over.
"""

from __future__ import annotations

from harness.errors import InputError


class WireReader:
    """Read fields of a blob in their order.

    Args:
        data: the whole blob.
        what: its name in messages.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def take(self, count: int, field: str) -> bytes:
        """Return the next `count` bytes.

        Raises:
            InputError: fewer bytes are left.
        """
        left = len(self._data) - self._at
        if count > left:
            raise InputError(f"{self._what}: {field}: expected {count} bytes, got {left}")
        self._at += count
        return self._data[self._at - count : self._at]

    def uint32(self, field: str) -> int:
        """Return a `uint32`.

        Raises:
            InputError: fewer than four bytes are left.
        """
        return int.from_bytes(self.take(4, field), "big")

    def string(self, field: str) -> bytes:
        """Return a `string`: its length as `uint32`, then that many bytes.

        Raises:
            InputError: the blob ends before the string does.
        """
        return self.take(self.uint32(field), field)

    def finish(self) -> None:
        """Check that the blob ends here.

        Raises:
            InputError: bytes are left over.
        """
        if left := len(self._data) - self._at:
            raise InputError(f"{self._what}: expected its end, got {left} more bytes")


def wire_string(data: bytes) -> bytes:
    """Return bytes as a `string`."""
    return len(data).to_bytes(4, "big") + data
