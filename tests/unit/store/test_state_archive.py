"""The plain archive: one spelling, readable by tar, and everything else refused."""

from __future__ import annotations

import io
import tarfile
from typing import Literal

import pytest

from harness.errors import VerificationError
from harness.store.archive import BLOCK, ArchiveReader, ArchiveWriter, header_of

MEMBERS = {"a": b"", "b/c": b"x", "d": b"y" * BLOCK, "e" * 99: b"z" * (BLOCK + 1)}


def written(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    writer = ArchiveWriter(stream)
    for name, data in members.items():
        writer.add(name, len(data), (data[:1], data[1:]))
    writer.finish()
    return stream.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    reader = ArchiveReader(io.BytesIO(data))
    found = {}
    while (member := reader.next()) is not None:
        found[member[0]] = b"".join(reader.content())
        assert len(found[member[0]]) == member[1]
    return found


def test_what_was_written_is_read() -> None:
    assert read(written(MEMBERS)) == MEMBERS


def test_tar_itself_reads_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(written(MEMBERS))) as archive:
        found = {item.name: (item.mode, item.size, item.type) for item in archive}
    assert found == {name: (0o600, len(data), tarfile.REGTYPE) for name, data in MEMBERS.items()}


def test_a_size_beyond_eight_gigabytes_has_a_header() -> None:
    size = 20 << 30
    assert ArchiveReader(io.BytesIO(header_of("big", size))).next() == ("big", size)


def test_content_of_another_size_is_not_written_as_if_it_were_right() -> None:
    for size in (2, 4):
        with pytest.raises(VerificationError, match=f"a: expected {size} bytes, got 3"):
            ArchiveWriter(io.BytesIO()).add("a", size, (b"abc",))


def test_a_cut_at_every_byte_is_noticed() -> None:
    data = written({"a": b"x", "b": b""})
    for length in range(len(data)):
        with pytest.raises(VerificationError, match="is cut off"):
            read(data[:length])


def test_every_flipped_bit_outside_the_content_is_noticed() -> None:
    data = written({"a": b"x"})
    places = [place for place in range(len(data)) if place != BLOCK]
    for place in places:
        bad = bytearray(data)
        bad[place] ^= 1 << (place % 8)
        # Another size or name that is well spelled needs its checksum: two flips at least.
        with pytest.raises(VerificationError, match=r"^backup: "):
            read(bytes(bad))


def test_more_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(VerificationError, match="expected its end, got more"):
        read(written({"a": b"x"}) + b"\0")


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.LNKTYPE,
        tarfile.SYMTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.DIRTYPE,
        tarfile.FIFOTYPE,
        tarfile.CONTTYPE,
        tarfile.AREGTYPE,
        tarfile.GNUTYPE_SPARSE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
    ],
)
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT])
def test_whatever_is_no_plain_file_is_refused(kind: bytes, form: Literal[0, 1, 2]) -> None:
    info = tarfile.TarInfo("a")
    info.type, info.linkname, info.mode = kind, "/etc/passwd", 0o600
    with pytest.raises(VerificationError, match=r"^backup: expected"):
        read(info.tobuf(form) + bytes(2 * BLOCK))


@pytest.mark.parametrize(
    ("member", "value"),
    [("mode", 0o4755), ("uid", 1), ("mtime", 1), ("uname", "root"), ("linkname", "x")],
)
def test_a_header_with_anything_else_in_it_is_refused(member: str, value: object) -> None:
    info = tarfile.TarInfo("a")
    info.mode = 0o600
    setattr(info, member, value)
    with pytest.raises(VerificationError, match="expected plain files only"):
        read(info.tobuf(tarfile.GNU_FORMAT) + bytes(2 * BLOCK))


def test_a_negative_size_is_refused() -> None:
    header = bytearray(header_of("a", 0))
    header[124:136] = b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(VerificationError, match=r"^backup: expected"):
        read(bytes(header))
