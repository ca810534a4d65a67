"""Reading a workspace back: a hostile archive changes a folder of ours at most, within bounds."""

from __future__ import annotations

import io
import os
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from harness.errors import ContainmentError, EngineUnreachableError, VerificationError
from harness.execution.snapshot.take import take_snapshot
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.read_back import SMALL, TOO_DEEP, ReadBack, read_back
from harness.execution.worker.workspace import NAME_COST
from harness.store.blobs import BlobStore
from harness.store.state import open_state
from tests.fakes.quarantine_case import QuarantineCase
from tests.fakes.trees import TREES, File, Link, Tree, changeset_between, write_tree

LIMIT = 1 << 22


class Case:
    """A project, its snapshot, and a folder for what comes back."""

    def __init__(self, folder: Path, base: Tree) -> None:
        self.project = folder / "project"
        write_tree(self.project, base)
        self.state = open_state(folder / "state")
        owner = (os.geteuid(), os.getegid())
        taken = take_snapshot(self.project, state=self.state, project="0" * 32, owner=owner)
        self.view = SnapshotView(self.state, taken.digest)
        self.upper = folder / "upper"
        self.upper.mkdir()

    def read(self, archive: bytes, *, limit: int = LIMIT) -> ReadBack:
        return self.stream(iter([archive]), limit=limit)

    def stream(self, archive: Iterator[bytes], *, limit: int = LIMIT) -> ReadBack:
        return read_back(
            archive,
            root=b"ws",
            snapshot=self.view,
            before={content.path: content.node for content in self.view.contents()},
            upper=self.upper,
            owner=(os.geteuid(), os.getegid()),
            limit=limit,
        )

    def left(self) -> list[str]:
        return sorted(str(path.relative_to(self.upper)) for path in self.upper.rglob("*"))


def pack(folder: Path) -> bytes:
    """Return a folder's archive as an engine makes it."""
    archive = io.BytesIO()
    with tarfile.open(
        fileobj=archive, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape"
    ) as tar:
        tar.add(folder, arcname="ws")
    return archive.getvalue()


def members(*made: tuple[tarfile.TarInfo, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member("ws", tarfile.DIRTYPE))
        for info, data in made:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return archive.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=TREES, after=TREES)
def test_what_comes_back_is_imported_as_the_difference_of_the_trees(
    tmp_path_factory: pytest.TempPathFactory, before: Tree, after: Tree
) -> None:
    folder = tmp_path_factory.mktemp("case")
    case = Case(folder, before)
    write_tree(folder / "after", after)
    back = case.read(pack(folder / "after"))
    assert back.complete
    blobs = BlobStore(folder / "objects")
    imported = QuarantineCase(blobs=blobs, base=before, gone=back.gone).run(case.upper)
    assert imported.changeset == changeset_between(before, after, blobs)
    assert imported.by_products == ()


def test_nothing_done_writes_nothing(tmp_path: Path) -> None:
    big = random.Random(1).randbytes(SMALL + 10)  # noqa: S311 - a test repeats by its seed
    case = Case(tmp_path, {b"a": File(b"a"), b"d": {b"big": File(big), b"l": Link(b"a")}, b"e": {}})
    back = case.read(pack(case.project))
    assert (back, case.left()) == (ReadBack(gone={}, size=0, complete=True), [])


@pytest.mark.parametrize("at", [0, SMALL - 1, SMALL, 2 * SMALL - 1])
def test_one_byte_in_a_large_file_is_found_and_the_rest_is_kept(tmp_path: Path, at: int) -> None:
    big = random.Random(2).randbytes(2 * SMALL)  # noqa: S311 - a test repeats by its seed
    case = Case(tmp_path, {b"big": File(big)})
    changed = big[:at] + bytes([big[at] ^ 1]) + big[at + 1 :]
    (case.project / "big").write_bytes(changed)
    back = case.read(pack(case.project))
    assert (case.upper / "big").read_bytes() == changed
    assert back.size == len(changed)


@pytest.mark.fault("L031")
@pytest.mark.parametrize(
    "hostile",
    [
        [(member("ws/l", tarfile.SYMTYPE, link="/"), b""), (member("ws/l/etc"), b"x")],
        [(member("ws/h", tarfile.LNKTYPE, link="/etc/passwd"), b"")],
        [(member("ws/h", tarfile.LNKTYPE, link="ws/later"), b""), (member("ws/later"), b"")],
        [(member("ws/h", tarfile.LNKTYPE, link="ws/src"), b"")],
        [(member("ws/../out"), b"x")],
        [(member("/out"), b"x")],
        [(member("ws/null", tarfile.CHRTYPE), b"")],
        [(member("ws/sda", tarfile.BLKTYPE), b"")],
        [(member("ws/a"), b"1"), (member("ws/a"), b"2")],
    ],
)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(
    tmp_path: Path, hostile: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    case = Case(tmp_path, {b"src": {b"a": File(b"a")}})
    before = sorted(path for path in tmp_path.rglob("*") if case.upper not in path.parents)
    with pytest.raises(ContainmentError, match="workspace"):
        case.read(members(*hostile))
    after = sorted(path for path in tmp_path.rglob("*") if case.upper not in path.parents)
    assert after == before
    assert not [path for path in case.upper.rglob("*") if path.is_char_device()]


def test_a_link_made_first_is_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    case = Case(tmp_path, {b"d": {b"a": File(b"a")}})
    (case.upper / "d").symlink_to(outside)
    with pytest.raises(Exception, match="write what a worker changed"):
        case.read(members((member("ws/d", tarfile.DIRTYPE), b""), (member("ws/d/b"), b"x")))
    assert list(outside.iterdir()) == []


def test_a_hard_link_to_what_the_snapshot_has_carries_its_content(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"content")})
    os.link(case.project / "a", case.project / "b")
    case.read(pack(case.project))
    assert (case.upper / "b").read_bytes() == b"content"
    assert (case.upper / "a").samefile(case.upper / "b")


def test_a_folder_that_denies_its_owner_is_filled_and_keeps_its_mode(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"")})
    shut = member("ws/shut", tarfile.DIRTYPE)
    shut.mode = 0o3000
    case.read(members((member("ws/a"), b""), (shut, b""), (member("ws/shut/in"), b"in")))
    assert (case.upper / "shut").stat().st_mode & 0o7777 == 0o3000
    (case.upper / "shut").chmod(0o700)
    assert (case.upper / "shut" / "in").read_bytes() == b"in"


def test_more_than_the_limit_ends_the_reading_before_it_is_written(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"a"), b"z": File(b"z")})
    huge = member("ws/huge")
    huge.size = 4 << 30

    def endless() -> Iterator[bytes]:
        yield members((member("ws/small"), b"s"))[: 512 * 3]
        yield huge.tobuf(tarfile.PAX_FORMAT)
        while True:
            pytest.fail("was read on")

    back = case.stream(endless())
    assert (back.complete, back.gone, case.left()) == (False, {}, ["small"])


def test_every_name_counts_and_so_does_one_that_is_gone(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"a"), b"b": {b"c": File(b"c")}})
    archive = members((member("ws/empty"), b""))
    assert case.read(archive, limit=3 * NAME_COST) == ReadBack(
        gone={b"": frozenset({b"a", b"b"})}, size=3 * NAME_COST, complete=True
    )
    (case.upper / "empty").unlink()
    assert not case.read(archive, limit=3 * NAME_COST - 1).complete


def test_a_path_so_deep_that_more_may_lie_below_it_is_over_the_limit(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"a")})
    name, path, made = "n" * 200, "ws", [(member("ws/a"), b"a")]
    while len(path) <= TOO_DEEP + 3:
        path = f"{path}/{name}"
        made.append((member(path, tarfile.DIRTYPE), b""))
    assert not case.read(members(*made)).complete


def test_a_cut_archive_is_no_result(tmp_path: Path) -> None:
    case = Case(tmp_path, {b"a": File(b"a" * 2000)})
    with pytest.raises(EngineUnreachableError, match="was cut"):
        case.read(pack(case.project)[:1800])


def test_a_damaged_layer_can_not_change_what_comes_back(tmp_path: Path) -> None:
    big = bytes(SMALL + 10)
    case = Case(tmp_path, {b"big": File(big), b"a": File(b"content")})
    archive = pack(case.project)
    os.link(case.project / "a", case.project / "b")
    linked = pack(case.project)
    (layer,) = case.view.layers
    (layer / "big").write_bytes(b"!" + big[1:])
    case.read(archive)
    assert (case.upper / "big").read_bytes() == big
    (layer / "a").write_bytes(b"CONTENT")
    with pytest.raises(VerificationError, match="a: expected sha256:"):
        case.read(linked)
