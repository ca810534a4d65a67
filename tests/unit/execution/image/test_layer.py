from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from harness.errors import ContainmentError, HarnessError, VerificationError
from harness.execution.image.layer import FIXED_TIME, rewrite_layer, write_tree_layer


class Collected:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def layer_of_tree(tree: Path) -> bytes:
    sink = Collected()
    write_tree_layer(tree, sink)
    return sink.data


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: member for member in archive.getmembers()}


def make_tree(tree: Path, names: list[str]) -> None:
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)


def test_the_same_files_give_the_same_bytes_whatever_their_order_and_times(tmp_path: Path) -> None:
    names = ["b", "a/x", "a/y", "é", "a.b"]
    for where, order in (("one", names), ("two", names[::-1])):
        make_tree(tmp_path / where, order)
    os.utime(tmp_path / "two" / "b", (1, 1))
    one, two = (layer_of_tree(tmp_path / where) for where in ("one", "two"))
    assert one == two
    assert [member.mtime for member in members(one).values()] == [FIXED_TIME] * 6
    assert list(members(one)) == ["a", "a/x", "a/y", "a.b", "b", "é"]


def test_set_id_bits_sockets_and_fifos_stay_out_and_links_stay_links(tmp_path: Path) -> None:
    make_tree(tmp_path, ["file", "second"])
    (tmp_path / "file").chmod(0o6755)
    (tmp_path / "second").unlink()
    os.link(tmp_path / "file", tmp_path / "second")
    (tmp_path / "link").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "fifo")
    found = members(layer_of_tree(tmp_path))
    assert found["file"].mode == 0o755
    assert found["second"].islnk()
    assert found["second"].linkname == "file"
    assert found["link"].issym()
    assert found["link"].linkname == "/etc/shadow"
    assert "fifo" not in found


def tar_of(*items: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member, data in items:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member(name: str, *, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime, info.uname = kind, mode, 99, "who"
    return info


def test_what_a_container_made_becomes_a_plain_sorted_layer() -> None:
    made = tar_of(
        (member("out", kind=tarfile.DIRTYPE, mode=0o700), b""),
        (member("out/b", mode=0o4700), b"bb"),
        (member("out/a", mode=0o600), b"a"),
    )
    layer = rewrite_layer(made, "out")
    found = members(layer)
    assert list(found) == ["a", "b"]
    assert (found["a"].mode, found["b"].mode) == (0o644, 0o755)
    assert {(item.uid, item.gid, item.uname, item.mtime) for item in found.values()} == {
        (0, 0, "", FIXED_TIME)
    }
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        content = archive.extractfile("b")
        assert content is not None
        assert content.read() == b"bb"


@pytest.mark.parametrize(
    "bad",
    [
        member("elsewhere/a"),
        member("out/../a"),
        member("/out/a"),
        member("out/dev", kind=tarfile.CHRTYPE),
        member("out/fifo", kind=tarfile.FIFOTYPE),
        member("out/hard", kind=tarfile.LNKTYPE),
    ],
)
def test_what_is_no_file_below_the_folder_is_refused(bad: tarfile.TarInfo) -> None:
    with pytest.raises(ContainmentError, match="build container"):
        rewrite_layer(tar_of((bad, b"")), "out")


def test_what_is_no_archive_is_refused() -> None:
    with pytest.raises(VerificationError, match="can't be read"):
        rewrite_layer(b"x" * 2000, "out")


def test_a_cut_archive_is_refused() -> None:
    whole = tar_of((member("out/a"), b"a" * 3000))
    with pytest.raises(HarnessError):
        rewrite_layer(whole[:1500], "out")
