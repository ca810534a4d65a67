"""A backup that somebody made to do harm: refused with a typed error, nothing written."""

from __future__ import annotations

import io
import json
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import (
    HarnessError,
    InputError,
    LedgerBrokenError,
    NewerStateError,
    VerificationError,
)
from harness.flows.backup import back_up
from harness.flows.named_objects import named_objects
from harness.flows.restore import restore_state
from harness.flows.session import open_host
from harness.model.backup import digest_of_names, object_path, parse_object_path
from harness.model.canonical import canonical_bytes
from harness.model.digest import digest_of
from harness.model.entry import parse_entry
from harness.store.archive import BLOCK, ArchiveReader, ArchiveWriter
from tests.fakes.old_state import unpack_old_state

Members = list[tuple[str, bytes]]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a backup that is all right."""
    folder = tmp_path_factory.mktemp("good")
    old = unpack_old_state(folder / "old")
    file = folder / "b.tar"
    back_up(open_host({"HARNESS_STATE": str(old.state)}), file, with_key=True)
    return file.read_bytes()


def members_of(data: bytes) -> Members:
    reader = ArchiveReader(io.BytesIO(data))
    found: Members = []
    while (member := reader.next()) is not None:
        found.append((member[0], b"".join(reader.content())))
    return found


def packed(members: Members) -> bytes:
    stream = io.BytesIO()
    writer = ArchiveWriter(stream)
    for name, data in members:
        writer.add(name, len(data), (data,))
    writer.finish()
    return stream.getvalue()


def restamped(members: Members, change: Callable[[dict[str, Any]], object] | None = None) -> bytes:
    """Pack members under a manifest that fits them, changed if asked."""
    manifest = json.loads(dict(members)["manifest.json"])
    inner = members[1:-1]
    small = [(name, data) for name, data in inner if not name.startswith("objects/")]
    objects = [(name, data) for name, data in inner if name.startswith("objects/")]
    manifest["files"] = [
        {"path": name, "size": len(data), "digest": digest_of(data)} for name, data in small
    ]
    manifest["objects"] = {
        "count": len(objects),
        "bytes": sum(len(data) for _, data in objects),
        "digest": digest_of_names(parse_object_path(name) for name, _ in objects),
    }
    if change is not None:
        change(manifest)
    text = canonical_bytes(manifest)
    ends: Members = [("manifest.digest", digest_of(text).encode() + b"\n")]
    return packed([("manifest.json", text), *inner, *ends])


def refused(
    data: bytes, tmp_path: Path, error: type[HarnessError] = VerificationError
) -> HarnessError:
    file = tmp_path / "bad.tar"
    file.write_bytes(data)
    with pytest.raises(error) as caught:
        restore_state(file, environment={"HARNESS_STATE": str(tmp_path / "state")})
    assert [item.name for item in tmp_path.iterdir()] == ["bad.tar"]
    assert caught.value.message
    return caught.value


def test_the_good_one_is_good(good: bytes, tmp_path: Path) -> None:
    assert packed(members_of(good)) == restamped(members_of(good)) == good
    (tmp_path / "b.tar").write_bytes(good)
    restore_state(tmp_path / "b.tar", environment={"HARNESS_STATE": str(tmp_path / "state")})


def test_a_flipped_bit_anywhere_is_noticed(good: bytes, tmp_path: Path) -> None:
    picks = random.Random(1)  # noqa: S311 - places, not secrets
    places = [picks.randrange(len(good)) for _ in range(80)]
    places += [*range(0, 4 * BLOCK, 127), len(good) - 1, len(good) - 2 * BLOCK]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << picks.randrange(8)
        refused(bytes(bad), tmp_path)


def test_a_cut_anywhere_is_noticed(good: bytes, tmp_path: Path) -> None:
    blocks = [*range(0, 20 * BLOCK, BLOCK), *range(0, len(good), len(good) // 20), len(good) - 1]
    for length in blocks:
        refused(good[:length], tmp_path)


def test_more_than_the_backup_is_refused(good: bytes, tmp_path: Path) -> None:
    refused(good + b"\0", tmp_path)
    refused(good + good, tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 1024, b"no tar at all" * 100, b"\x1f\x8b" + b"0" * 600]
)
def test_something_else_is_refused(data: bytes, tmp_path: Path) -> None:
    assert "backup: expected" in refused(data, tmp_path).message or not data


EVIL = [
    "../evil",
    "/etc/evil",
    "objects/../../evil",
    "host/../../evil",
    "ledger/entries.jsonl/..",
    "ledger/torn/../../../evil",
    "projects/../evil/project.json",
    "projects/" + "a" * 32 + "/../project.json",
    "projects/" + "a" * 32 + "/apply/journal.json",
    "projects/" + "A" * 32 + "/project.json",
    "./images.lock",
    "host//key.pem",
    "host/next.pem",
    "ledger/frontier",
    "restored.json",
    "engine/daemon.json",
    "ledger/torn/1-abcdefabcdef\n",
]


@pytest.mark.parametrize("name", EVIL)
def test_a_file_of_another_name_is_refused(good: bytes, tmp_path: Path, name: str) -> None:
    first, *rest = members_of(good)
    small = [item for item in rest if not item[0].startswith(("objects/", "manifest"))]
    objects = [item for item in rest if item[0].startswith("objects/")]
    named: Members = sorted([*small, (name, b"evil")])
    listed = [{"path": path, "size": len(data), "digest": digest_of(data)} for path, data in named]
    bad = restamped([first, *small, *objects, rest[-1]], lambda m: m.update(files=listed))
    error = refused(bad, tmp_path)
    assert "is no file of a backup" in error.message


@pytest.mark.parametrize(
    "name", [*EVIL, "objects/ab/" + "c" * 61, "objects/ab/" + "C" * 62, "objects/" + "a" * 64]
)
def test_an_object_of_another_name_is_refused(good: bytes, tmp_path: Path, name: str) -> None:
    members = members_of(good)
    assert (
        "expected an object"
        in refused(packed([*members[:-1], (name, b"evil"), members[-1]]), tmp_path).message
    )


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
@pytest.mark.parametrize("name", ["objects", "host/key.pem", "ledger"])
def test_a_link_a_device_or_a_folder_is_refused_wherever_it_stands(
    good: bytes, tmp_path: Path, kind: bytes, name: str
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, str(tmp_path), 0o600
    header = info.tobuf(tarfile.GNU_FORMAT)
    first = good.index(b"host/key.pem")
    for place in (0, first, len(good) - 2 * BLOCK):
        refused(good[:place] + header + good[place:], tmp_path)


def changed_members() -> dict[str, Callable[[Members], Members]]:
    def swap(members: Members, one: int, other: int) -> Members:
        changed = list(members)
        changed[one], changed[other] = changed[other], changed[one]
        return changed

    return {
        "a file twice": lambda m: [*m[:2], m[1], *m[2:]],
        "an object twice": lambda m: [*m[:-1], m[-2], m[-1]],
        "files out of order": lambda m: swap(m, 1, 2),
        "objects out of order": lambda m: swap(m, -2, -3),
        "a file less": lambda m: [m[0], *m[2:]],
        "an object less": lambda m: [*m[:-2], m[-1]],
        "no manifest": lambda m: m[1:],
        "the manifest later": lambda m: swap(m, 0, 1),
        "no end": lambda m: m[:-1],
        "the end twice": lambda m: [*m, m[-1]],
        "the end early": lambda m: swap(m, -1, -3),
        "another end": lambda m: [*m[:-1], ("manifest.digest", b"sha256:" + b"0" * 64 + b"\n")],
        "an endless end": lambda m: [*m[:-1], ("manifest.digest", b"0" * 100_000)],
        "an object of other bytes": lambda m: [*m[:-2], (m[-2][0], b"other"), m[-1]],
        "an object more": lambda m: [
            *m[:-1],
            (object_path(digest_of(b"40")), b"40"),
            m[-1],
        ],
    }


@pytest.mark.parametrize("name", changed_members())
def test_members_that_are_not_as_written_are_refused(
    good: bytes, tmp_path: Path, name: str
) -> None:
    refused(packed(changed_members()[name](members_of(good))), tmp_path)


def manifests() -> dict[str, Callable[[dict[str, Any]], object]]:
    return {
        "a member more": lambda m: m.update(more=1),
        "no entries": lambda m: m.pop("entries"),
        "fewer entries": lambda m: m.update(entries=18),
        "entries of another type": lambda m: m.update(entries=True),
        "another root": lambda m: m.update(root=digest_of(b"")),
        "another last time": lambda m: m.update(last="2026-01-31T12:00:00.000Z"),
        "no time": lambda m: m.update(created="yesterday"),
        "files of another type": lambda m: m.update(files={}),
        "a file without its digest": lambda m: m["files"][0].pop("digest"),
        "a negative size": lambda m: m["files"][0].update(size=-1),
        "another size": lambda m: m["files"][0].update(size=7),
        "another digest": lambda m: m["files"][0].update(digest=digest_of(b"")),
        "fewer objects": lambda m: m["objects"].update(count=1),
        "objects of another size": lambda m: m["objects"].update(bytes=1),
        "other objects": lambda m: m["objects"].update(digest=digest_of(b"")),
        "another kind": lambda m: m.update(_type="harness/plan/v1"),
    }


@pytest.mark.parametrize("name", manifests())
def test_a_manifest_that_is_not_right_is_refused(good: bytes, tmp_path: Path, name: str) -> None:
    refused(restamped(members_of(good), manifests()[name]), tmp_path)


def test_a_manifest_that_is_no_canonical_json_or_endless_is_refused(
    good: bytes, tmp_path: Path
) -> None:
    members = members_of(good)
    text = json.dumps(json.loads(members[0][1]), indent=1).encode()
    for data in (text, b"[]", b"", b"{", b'{"_type":"harness/backup/v1"}', b" " * (17 << 20)):
        refused(packed([("manifest.json", data), *members[1:]]), tmp_path)


def test_a_backup_of_a_newer_harness_says_so(good: bytes, tmp_path: Path) -> None:
    data = restamped(members_of(good), lambda m: m.update(_type="harness/backup/v2"))
    error = refused(data, tmp_path, NewerStateError)
    assert "harness/backup: expected version 1 at most, got version 2" in error.message
    assert "upgrade harness" in error.hint


# ---- a whole that fits its manifest, and is no state ----


def replaced(members: Members, path: str, data: bytes | None) -> Members:
    changed = [(name, data if name == path else old) for name, old in members]
    return [(name, content) for name, content in changed if content is not None]


def test_a_ledger_that_was_changed_is_refused(good: bytes, tmp_path: Path) -> None:
    members = members_of(good)
    lines = dict(members)["ledger/entries.jsonl"]
    cut = b"".join(lines.splitlines(keepends=True)[:-1])
    for data in (lines.replace(b'"passed"', b'"failed"', 1), cut, b"", lines + b"{}\n"):
        bad = restamped(replaced(members, "ledger/entries.jsonl", data))
        refused(bad, tmp_path, VerificationError)
    bad = restamped(replaced(members, "ledger/checkpoint", b"garbage"))
    refused(bad, tmp_path, LedgerBrokenError)


def test_a_key_that_does_not_belong_is_refused(good: bytes, tmp_path: Path) -> None:
    members = members_of(good)
    other = open_host({"HARNESS_STATE": str(tmp_path / "other")}).state.host
    keys = {name: (other / name).read_bytes() for name in ("key.pem", "key.vkey")}
    for path in sorted((tmp_path / "other").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "other").rmdir()
    for name, data in keys.items():
        refused(restamped(replaced(members, f"host/{name}", data)), tmp_path, LedgerBrokenError)
    refused(restamped(replaced(members, "host/key.pem", b"garbage")), tmp_path, LedgerBrokenError)


@pytest.mark.parametrize("path", ["host/key.vkey", "ledger/checkpoint", "ledger/entries.jsonl"])
def test_a_file_that_every_backup_has_is_missed(good: bytes, tmp_path: Path, path: str) -> None:
    error = refused(restamped(replaced(members_of(good), path, None)), tmp_path)
    assert f"{path} is missing" in error.message


def test_an_object_that_the_ledger_names_is_missed(good: bytes, tmp_path: Path) -> None:
    members = members_of(good)
    objects = {parse_object_path(name): data for name, data in members if "objects/" in name}
    lines = dict(members)["ledger/entries.jsonl"].splitlines()
    named = set(named_objects([parse_entry(line) for line in lines], objects.__getitem__))
    # Folder objects of snapshots are named by other objects only, and can be made again.
    others = [json.loads(data)["_type"] for digest, data in objects.items() if digest not in named]
    assert set(others) == {"harness/folder/v1"}
    for digest in sorted(named)[::5]:
        bad = restamped(replaced(members, object_path(digest), None))
        assert digest in refused(bad, tmp_path).message


def test_damaged_records_are_refused(good: bytes, tmp_path: Path) -> None:
    members = members_of(good)
    (record,) = (name for name, _ in members if name.startswith("projects/"))
    for path in (record, "images.lock"):
        data = restamped(replaced(members, path, b"garbage"))
        refused(data, tmp_path, HarnessError)


# ---- the file itself ----


@pytest.fixture
def odd_files(tmp_path: Path) -> dict[str, Path]:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    return {
        "fifo": tmp_path / "fifo",
        "folder": tmp_path,
        "loop": tmp_path / "loop",
        "missing": tmp_path / "missing",
        "device": Path("/dev/zero"),
    }


@pytest.mark.parametrize("name", ["fifo", "folder", "loop", "missing", "device"])
def test_what_is_no_file_is_refused_at_once(
    odd_files: dict[str, Path], tmp_path: Path, name: str
) -> None:
    with pytest.raises((InputError, VerificationError)):
        restore_state(odd_files[name], environment={"HARNESS_STATE": str(tmp_path / "state")})
    assert not (tmp_path / "state").exists()
