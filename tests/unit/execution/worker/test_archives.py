"""Archives of a workspace: written as tarfile reads them, read as an engine writes them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ContainmentError, EngineUnreachableError, SandboxUnavailableError
from harness.execution.snapshot.contents import Content
from harness.execution.worker.archive_reader import ArchiveReader, Member
from harness.execution.worker.archive_writer import write_archive
from harness.model.digest import digest_of
from harness.model.tree import EMPTY_FOLDER, Node, folder_node

OWNER = (65532, 65533)


def content(path: bytes, data: bytes | None = None, *, target: bytes = b"") -> Content:
    """Return a file, or a symlink, or a folder."""
    if data is not None:
        return Content(path, Node("file", "100644", len(data), digest_of(data)), iter((data,)))
    if target:
        node = Node("symlink", "120000", len(target), digest_of(target))
        return Content(path, node, iter((target,)))
    return Content(path, folder_node(EMPTY_FOLDER), iter(()))


def write(contents: Iterable[Content], owner: tuple[int, int] = OWNER) -> bytes:
    return b"".join(write_archive(contents, root=b"ws", owner=owner, mtime=315_532_800))


def read(archive: bytes, *, cut: int = 700) -> list[tuple[Member, bytes]]:
    pieces = (archive[at : at + cut] for at in range(0, len(archive), cut))
    reader = ArchiveReader(pieces, b"ws")
    return [(member, b"".join(reader.content())) for member in reader.members()]


def pack(*members: tarfile.TarInfo, data: bytes = b"", pax: bool = True) -> bytes:
    """Return an archive with a folder `ws` and some members, as tarfile writes them."""
    archive = io.BytesIO()
    form = tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    with tarfile.open(fileobj=archive, mode="w", format=form, errors="surrogateescape") as tar:
        for member in (info("ws", tarfile.DIRTYPE), *members):
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return archive.getvalue()


def info(
    name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", size: int = 0
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


def test_tarfile_reads_what_is_written() -> None:
    long = b"n" * 120
    archive = write(
        [
            content(b"folder"),
            content(b"folder/" + long, b"long name"),
            content(b"raw-\xff", b"x" * 1000),
            content(b"link", target=b"t" * 150),
        ],
        owner=(3_000_000, 4),
    )
    with tarfile.open(fileobj=io.BytesIO(archive), errors="surrogateescape") as tar:
        found = {member.name.encode("utf-8", "surrogateescape"): member for member in tar}
        names = [b"ws", b"ws/folder", b"ws/folder/" + long, b"ws/raw-\xff", b"ws/link"]
        assert list(found) == names
        assert {member.uid for member in found.values()} == {3_000_000}
        assert {member.mtime for member in found.values()} == {315_532_800}
        assert [oct(found[name].mode) for name in names] == [
            *("0o755", "0o755", "0o644", "0o644", "0o777")
        ]
        assert found[b"ws/link"].linkname == "t" * 150
        stream = tar.extractfile(found[b"ws/folder/" + long])
        assert stream is not None
        assert stream.read() == b"long name"


NAMES = st.binary(min_size=1, max_size=180).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


@given(
    files=st.dictionaries(NAMES, st.binary(max_size=3000), max_size=6),
    cut=st.integers(1, 5000),
)
def test_what_is_written_is_read_again_however_it_is_cut(
    files: dict[bytes, bytes], cut: int
) -> None:
    archive = write([content(name, data) for name, data in files.items()])
    found = [(member.path, data) for member, data in read(archive, cut=cut)]
    assert found == [(b"", b""), *files.items()]


@given(files=st.dictionaries(NAMES, st.binary(max_size=2000), max_size=5), data=st.data())
def test_a_cut_archive_is_never_taken_for_a_whole_one(
    files: dict[bytes, bytes], data: st.DataObject
) -> None:
    archive = write([content(name, text) for name, text in files.items()])
    end = data.draw(st.integers(0, len(archive) - 1024))
    with pytest.raises(EngineUnreachableError, match="archive of the workspace was cut"):
        read(archive[:end])


def test_every_kind_that_an_engine_writes_is_told_apart() -> None:
    archive = pack(
        info("ws/file", size=3),
        info("ws/hard", tarfile.LNKTYPE, link="ws/file"),
        info("ws/soft", tarfile.SYMTYPE, link="../anywhere"),
        info("ws/fifo", tarfile.FIFOTYPE),
        info("ws/device", tarfile.CHRTYPE),
        info("ws/disk", tarfile.BLKTYPE),
        data=b"abc",
    )
    found = {member.path: (member.kind, member.target) for member, _ in read(archive)}
    assert found == {
        b"": ("folder", b""),
        b"file": ("file", b""),
        b"hard": ("hard-link", b"file"),
        b"soft": ("symlink", b"../anywhere"),
        b"fifo": ("fifo", b""),
        b"device": ("character-device", b""),
        b"disk": ("block-device", b""),
    }


@pytest.mark.fault("L028")
@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "ws/../x", "ws2/x", "x", "ws/./x", "ws//x", "../ws/x", "ws/..", "wsx"],
)
def test_a_name_outside_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ContainmentError, match="expected paths inside it"):
        read(pack(info(name)))


@pytest.mark.fault("L031")
def test_a_hard_link_to_outside_is_refused() -> None:
    with pytest.raises(ContainmentError, match="expected paths inside it"):
        read(pack(info("ws/a", tarfile.LNKTYPE, link="/etc/passwd")))


@pytest.mark.parametrize(
    "members",
    [
        (info("ws/a"), info("ws/a")),
        (info("ws/a"), info("ws/a/b")),
        (info("ws/link", tarfile.SYMTYPE, link="/"), info("ws/link/b")),
        (info("ws/none/b"),),
        (info("ws", tarfile.DIRTYPE),),
    ],
)
def test_a_name_twice_or_before_its_folder_is_refused(members: tuple[tarfile.TarInfo, ...]) -> None:
    with pytest.raises(ContainmentError, match="comes twice, or before the folder"):
        read(pack(*members))


def test_a_workspace_that_is_no_folder_is_refused() -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(info("ws"))
    with pytest.raises(ContainmentError, match="expected a folder, got a file"):
        read(archive.getvalue())


def with_record(record: bytes) -> bytes:
    """Return an archive whose one file has an extended header with these bytes."""
    member = info("x")
    member.pax_headers = {"path": "ws/" + "p" * 110}
    archive = pack(member)
    start = archive.index(b" path=") - 3
    header = archive[start - 512 : start]
    assert len(record) <= 512
    fields = header[:124] + b"%011o\0" % len(record) + header[136:148]
    checksum = sum(fields) + 8 * 32 + sum(header[156:])
    new = fields + b"%06o\0 " % checksum + header[156:]
    return archive[: start - 512] + new + record.ljust(512, b"\0") + archive[start + 512 :]


@pytest.mark.parametrize(
    "record",
    [
        b"22 GNU.sparse.major=1\n",
        b"25 GNU.sparse.size=99999\n",
        b"19 hdrcharset=LATIN\n",
        b"12 path=a\0b\n",
        b"9 path=ab\n",
        b"99 path=ab\n",
        b"x path=ab\n",
        b"11 path=ab",
        b"8 pathab\n",
        b"0 =\n",
    ],
)
def test_an_extended_header_with_tricks_is_refused(record: bytes) -> None:
    with pytest.raises(SandboxUnavailableError, match="its archive of the workspace holds"):
        read(with_record(record))


@pytest.mark.parametrize("size", [b"-1", b"1x", b"9" * 30, b""])
def test_a_size_that_is_no_number_is_refused(size: bytes) -> None:
    record = b" size=" + size + b"\n"
    length = len(record) + 2
    with pytest.raises(SandboxUnavailableError, match="a size that is no number"):
        read(with_record(b"%02d" % length + record))


@pytest.mark.parametrize("kind", [b"S", b"L", b"K", b"g", b"7", b"V", b"D", b"M", b"N", b"A"])
def test_other_types_are_refused(kind: bytes) -> None:
    with pytest.raises(SandboxUnavailableError, match="an entry of type"):
        read(pack(info("ws/a", kind)))


@pytest.mark.parametrize("at", [0, 100, 124, 148, 156, 257])
def test_a_damaged_header_is_refused(at: int) -> None:
    archive = bytearray(pack(info("ws/a", size=1), data=b"a"))
    archive[512 + at] ^= 0x55
    with pytest.raises(SandboxUnavailableError, match="its archive of the workspace holds"):
        read(bytes(archive))


def test_a_huge_extended_header_is_refused_before_it_is_read() -> None:
    member = info("ws/a")
    member.pax_headers = {"comment": "c" * (1 << 17)}
    with pytest.raises(SandboxUnavailableError, match="an extended header of"):
        read(pack(member))


def test_an_endless_file_is_read_piece_by_piece_and_left_when_told() -> None:
    header = pack()[:512] + info("ws/a", size=4 << 30).tobuf(tarfile.PAX_FORMAT)
    given_out = 0

    def endless() -> Iterator[bytes]:
        nonlocal given_out
        yield header
        while True:
            given_out += 1
            yield bytes(1 << 16)

    reader = ArchiveReader(endless(), b"ws")
    members = reader.members()
    assert [next(members).path, next(members).size] == [b"", 4 << 30]
    next(reader.content())
    assert given_out == 1
