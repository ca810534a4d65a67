"""A snapshot as a tar archive, made while it is sent.

Every entry has the owner, the modes and the times that a snapshot layer has, so that a worker
finds the same files whichever way they come. Headers are written by hand: for 10,000 files
`tarfile` takes longer than the engine.
Sources: POSIX pax, "ustar Interchange Format" and "pax Extended Header".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from harness.execution.snapshot.contents import Content
from harness.model.tree import EntryType

BLOCK = 512
END = bytes(2 * BLOCK)
"""Two empty blocks end an archive."""

SEND_BYTES = 1 << 18
"""Small entries are gathered into pieces of about so many bytes."""

_NAME_BYTES = 100
_MOST_ID = 0o7777777
_MOST_SIZE = 0o77777777777

_TYPES: Mapping[EntryType, bytes] = {"file": b"0", "symlink": b"2", "folder": b"5"}
_MODES = {"100644": 0o644, "100755": 0o755, "120000": 0o777, "040000": 0o755}


def write_archive(
    contents: Iterable[Content], *, root: bytes, owner: tuple[int, int], mtime: int
) -> Iterator[bytes]:
    """Yield the archive of a snapshot below one folder, in pieces.

    Args:
        contents: a folder before what it holds.
        root: name of the folder; it is the first entry.
        owner: user and group id of everything.
        mtime: seconds since the epoch, of everything.
    """
    stamp = _Stamp(*owner, mtime)
    pending = [_header(root + b"/", "folder", "040000", 0, stamp=stamp)]
    waiting = BLOCK
    for path, node, pieces in contents:
        name, target, size = root + b"/" + path, b"", 0
        if node.type == "folder":
            name += b"/"
        elif node.type == "symlink":
            target = b"".join(pieces)
        else:
            size = node.size
        pending.append(_header(name, node.type, node.mode, size, target=target, stamp=stamp))
        waiting += BLOCK + size
        for piece in pieces:
            pending.append(piece)
            if waiting >= SEND_BYTES:
                yield b"".join(pending)
                pending, waiting = [], 0
        pending.append(bytes(-size % BLOCK))
    pending.append(END)
    yield b"".join(pending)


class _Stamp(NamedTuple):
    """What all entries have in common."""

    uid: int
    gid: int
    mtime: int


def _header(
    name: bytes, kind: EntryType, mode: str, size: int, *, stamp: _Stamp, target: bytes = b""
) -> bytes:
    """Return one entry's header, after an extended one for what has no room in it."""
    records = b""
    for key, text in ((b"path", name), (b"linkpath", target)):
        if len(text) > _NAME_BYTES:
            records += _record(key, text)
    for key, number, most in (
        (b"size", size, _MOST_SIZE),
        (b"uid", stamp.uid, _MOST_ID),
        (b"gid", stamp.gid, _MOST_ID),
    ):
        if number > most:
            records += _record(key, b"%d" % number)
    plain = _ustar(name, _TYPES[kind], _MODES[mode], size, stamp=stamp, target=target)
    if not records:
        return plain
    extended = _ustar(b"pax", b"x", 0o644, len(records), stamp=stamp)
    return extended + records + bytes(-len(records) % BLOCK) + plain


def _ustar(
    name: bytes, kind: bytes, mode: int, size: int, *, stamp: _Stamp, target: bytes = b""
) -> bytes:
    before = b"%b%07o\0%07o\0%07o\0%011o\0%011o\0" % (
        name[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0"),
        mode,
        stamp.uid if stamp.uid <= _MOST_ID else 0,
        stamp.gid if stamp.gid <= _MOST_ID else 0,
        size if size <= _MOST_SIZE else 0,
        stamp.mtime,
    )
    after = b"%b%bustar\00000" % (kind, target[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0"))
    checksum = sum(before) + sum(after) + 8 * ord(" ")
    return (before + b"%06o\0 " % checksum + after).ljust(BLOCK, b"\0")


def _record(key: bytes, value: bytes) -> bytes:
    """Return one record of an extended header; its length counts its own digits."""
    rest = len(key) + len(value) + len(" =\n")
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %b=%b\n" % (length, key, value)
