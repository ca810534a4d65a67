"""Backup and restore of a real state: what an earlier harness wrote, opened by this one."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from harness.errors import (
    HarnessError,
    InputError,
    LedgerBrokenError,
    StateError,
    VerificationError,
)
from harness.flows import backup
from harness.flows.backup import BackedUp, back_up
from harness.flows.projects import list_projects
from harness.flows.restore import Restored, restore_state
from harness.flows.restored import MARK, settle_restore
from harness.flows.session import Host, open_host
from harness.ledger.key_folder import KeyFolder
from tests.fakes.old_state import OLD_ROOT, OldState, unpack_old_state


@pytest.fixture
def old(tmp_path: Path) -> OldState:
    return unpack_old_state(tmp_path / "old")


@pytest.fixture
def host(old: OldState) -> Host:
    return open_at(old.state)


def open_at(state: Path) -> Host:
    return open_host({"HARNESS_STATE": str(state)})


def save(host: Host, tmp_path: Path, *, with_key: bool = True) -> BackedUp:
    return back_up(host, tmp_path / "backup.tar", with_key=with_key)


def bring_back(tmp_path: Path, *, kept: bytes | None = None, place: str = "new") -> Restored:
    return restore_state(
        tmp_path / "backup.tar", environment={"HARNESS_STATE": str(tmp_path / place)}, kept=kept
    )


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_everything_that_counts_comes_back(host: Host, old: OldState, tmp_path: Path) -> None:
    made = save(host, tmp_path)
    restored = bring_back(tmp_path)
    before, after = files(old.state), files(tmp_path / "new")
    lines = before.pop("ledger/entries.jsonl")
    assert after.pop("ledger/entries.jsonl").startswith(lines)
    again = {"ledger/checkpoint", "ledger/frontier", "ledger/lock", "host/lock", "projects/lock"}
    for name in again:
        before.pop(name, None)
        after.pop(name, None)
    assert after == before
    new = open_at(tmp_path / "new")
    entry = new.ledger.entries()[-1]
    assert (entry.verb, dict(entry.body)) == (
        "restore",
        {"entries": 19, "backup": made.manifest.created},
    )
    report = new.ledger.verify()
    assert report.size == 20
    assert "line 20: the state was restored from a backup" in report.warnings[0]
    assert restored.problem == ""
    assert restored.key == made.key
    assert [str(item.root) for item in restored.lost_projects] == [OLD_ROOT]
    assert not (tmp_path / "new" / MARK).exists()


def test_nobody_else_may_read_a_backup_or_what_is_made_of_it(host: Host, tmp_path: Path) -> None:
    made = save(host, tmp_path)
    bring_back(tmp_path)
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "new", *(tmp_path / "new").rglob("*"))
        if path.is_dir()
    }
    assert modes == {0o700}
    assert stat.S_IMODE((tmp_path / "new/host/key.pem").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new", "backup.tar"}


def test_what_can_be_made_again_is_left_out(host: Host, old: OldState, tmp_path: Path) -> None:
    for name in ("layers/ab/t/x", "images/base.tar", "engine/pid", "runs/r/controller.lock"):
        path = old.state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"derived")
    (project,) = list_projects(host.state)
    (host.state.project(project.id) / "stat-cache.sqlite").write_bytes(b"derived")
    (old.state / "objects" / "incoming").mkdir()
    (old.state / "objects" / "incoming" / "half").write_bytes(b"half an object")
    made = save(host, tmp_path, with_key=False)
    with tarfile.open(made.file) as archive:
        names = [item.name for item in archive]
    assert names[:6] == [
        "manifest.json",
        "host/key.vkey",
        "images.lock",
        "ledger/checkpoint",
        "ledger/entries.jsonl",
        f"projects/{project.id}/project.json",
    ]
    assert names[-1] == "manifest.digest"
    assert all(name.startswith("objects/") for name in names[6:-1])
    assert len(names[6:-1]) == made.manifest.objects.count


def test_a_line_that_no_checkpoint_covers_stays_out(host: Host, tmp_path: Path) -> None:
    """Its effect never came: the process died before it was signed."""
    checkpoint = host.state.ledger / "checkpoint"
    signed = checkpoint.read_bytes()
    host.ledger.append("build", "done", project="", body={})
    checkpoint.write_bytes(signed)
    assert host.ledger.verify().size == 20
    made = save(host, tmp_path)
    assert made.manifest.entries == 19
    bring_back(tmp_path)
    assert open_at(tmp_path / "new").ledger.entries()[-1].verb == "restore"


def test_an_empty_checkpoint_is_refused_and_never_taken_for_none(
    host: Host, tmp_path: Path
) -> None:
    save(host, tmp_path)
    with pytest.raises(LedgerBrokenError, match="checkpoint: expected text"):
        bring_back(tmp_path, kept=b"")
    assert not (tmp_path / "new").exists()


def test_without_the_key_all_can_be_read_and_nothing_signed(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path, with_key=False)
    restored = bring_back(tmp_path)
    assert "key.pem is missing" in restored.problem
    new = open_at(tmp_path / "new")
    assert new.ledger.verify().size == 19
    with pytest.raises(LedgerBrokenError, match=r"key\.pem is missing"):
        settle_restore(new)
    with pytest.raises(LedgerBrokenError, match=r"key\.pem is missing"):
        new.ledger.append("build", "done", project="", body={})
    pem = (host.state.host / "key.pem").read_bytes()
    (new.state.host / "key.pem").touch(0o600)
    (new.state.host / "key.pem").write_bytes(pem)
    assert "earlier approvals count no more" in settle_restore(new)
    assert settle_restore(new) == ""
    assert new.ledger.entries()[-1].verb == "restore"


def test_a_restored_state_whose_key_is_lost_goes_on_with_a_new_one(
    host: Host, tmp_path: Path
) -> None:
    save(host, tmp_path, with_key=False)
    bring_back(tmp_path)
    new = open_at(tmp_path / "new")
    new.ledger.change_key("renew")
    assert settle_restore(new)
    assert [era.begun_by for era in new.ledger.verify().eras] == ["first", "renew"]


def test_a_change_of_key_goes_along(host: Host, tmp_path: Path) -> None:
    host.ledger.change_key("rotate")
    host.ledger.append("build", "done", project="", body={})
    made = save(host, tmp_path)
    bring_back(tmp_path)
    report = open_at(tmp_path / "new").ledger.verify()
    assert [era.begun_by for era in report.eras] == ["first", "rotate"]
    assert made.key == KeyFolder(host.state.host).signer().verifier.to_text()


# ---- what a backup refuses ----


def refuse(host: Host, file: Path, says: str, error: type[HarnessError]) -> None:
    there = set(file.parent.iterdir()) if file.parent.is_dir() else set()
    with pytest.raises(error, match=says):
        back_up(host, file, with_key=True)
    assert (set(file.parent.iterdir()) if file.parent.is_dir() else set()) == there


def test_a_backup_is_put_nowhere_else_than_asked(host: Host, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"mine")
    refuse(host, there, "is there already", InputError)
    assert there.read_bytes() == b"mine"
    (tmp_path / "link").symlink_to("nowhere")
    refuse(host, tmp_path / "link", "is there already", InputError)
    refuse(host, host.state.root / "b.tar", "lies in the state folder", InputError)
    refuse(host, host.state.root / "objects" / "b.tar", "lies in the state", InputError)
    refuse(host, tmp_path / "no" / "b.tar", "No such file", InputError)
    refuse(host, there / "b.tar", "Not a directory", InputError)


def test_an_empty_ledger_is_nothing_to_keep(tmp_path: Path) -> None:
    refuse(open_at(tmp_path / "s"), tmp_path / "b.tar", "nothing was recorded yet", InputError)


def test_a_damaged_object_is_named_and_nothing_written(host: Host, tmp_path: Path) -> None:
    digest, size = min(host.blobs.listing(), key=lambda item: -item[1])
    path = host.blobs.path_of(digest)
    good = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(b"x" * size)
    refuse(host, tmp_path / "b.tar", f"{digest}: stored bytes have another", VerificationError)
    path.write_bytes(good[:-1])
    refuse(host, tmp_path / "b.tar", f"{digest}: stored bytes have another", VerificationError)


def test_an_object_that_is_gone_is_named_while_it_can_still_be_looked_for(
    host: Host, tmp_path: Path
) -> None:
    record = next(e for e in host.ledger.entries() if e.body.get("record")).body["record"]
    host.blobs.path_of(record).unlink()
    refuse(
        host,
        tmp_path / "b.tar",
        f"object {record} is named by the ledger and missing",
        VerificationError,
    )


def test_a_damaged_ledger_is_not_kept(host: Host, tmp_path: Path) -> None:
    path = host.state.ledger / "entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"passed"', b'"failed"', 1))
    refuse(host, tmp_path / "b.tar", "ledger line", LedgerBrokenError)


def test_a_lost_key_can_not_be_kept_along(host: Host, tmp_path: Path) -> None:
    (host.state.host / "key.pem").unlink()
    refuse(host, tmp_path / "b.tar", r"key\.pem is missing", LedgerBrokenError)
    assert save(host, tmp_path, with_key=False).manifest.entries == 19


def test_a_place_that_can_not_be_written_is_named(host: Host) -> None:
    refuse(host, Path("/dev/full") / "b.tar", "Not a directory", InputError)
    with pytest.raises(StateError, match=r"backup: /proc/b\.tar: "):
        back_up(host, Path("/proc/b.tar"), with_key=True)


def test_an_apply_that_has_not_ended_is_waited_for(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"diff": f"sha256:{'0' * 64}", "run": "r", "plan": "p", "nonce": "f" * 32}
    host.ledger.append("apply", "intent", project="a" * 32, body=body)
    monkeypatch.setattr(backup, "APPLY_SECONDS", 0.0)
    refuse(
        host,
        tmp_path / "b.tar",
        "apply 000000000000 of project aaaaaaaaaaaa has not ended",
        StateError,
    )
    host.ledger.append("apply", "done", project="a" * 32, body={**body, "result": "rolled-back"})
    assert save(host, tmp_path).manifest.entries == 21


# ---- where a restore goes ----


@pytest.mark.parametrize("name", ["ledger/entries.jsonl", "host/key.pem", "images.lock", "deep/x"])
def test_a_state_folder_that_holds_something_is_left_as_it_is(
    host: Host, tmp_path: Path, name: str
) -> None:
    save(host, tmp_path)
    path = tmp_path / "new" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    with pytest.raises(StateError, match=f"expected nothing in .*new, got {name}"):
        bring_back(tmp_path)
    assert files(tmp_path / "new") == {name: b"mine"}


def test_empty_folders_and_a_link_to_one_give_way(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    (tmp_path / "target" / "ledger" / "torn").mkdir(parents=True)
    (tmp_path / "new").symlink_to("target")
    bring_back(tmp_path)
    assert (tmp_path / "new").is_symlink()
    assert open_at(tmp_path / "new").ledger.verify().size == 20


def test_folders_above_it_are_made_and_on_refusal_unmade(host: Host, tmp_path: Path) -> None:
    made = save(host, tmp_path)
    made.file.write_bytes(made.file.read_bytes()[:-1])
    with pytest.raises(VerificationError, match="is cut off"):
        bring_back(tmp_path, place="a/b/c")
    assert not (tmp_path / "a").exists()
    made.file.unlink()
    save(host, tmp_path)
    bring_back(tmp_path, place="a/b/c")
    assert open_at(tmp_path / "a/b/c").ledger.verify().size == 20


def test_what_a_killed_restore_left_gives_way(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    left = tmp_path / ".new.restoring"
    (left / "ledger").mkdir(parents=True)
    (left / "ledger" / "entries.jsonl").write_bytes(b"half")
    bring_back(tmp_path)
    assert not left.exists()


def test_a_file_in_the_state_folders_place_is_left(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    (tmp_path / "new").write_bytes(b"mine")
    with pytest.raises(StateError, match="expected a folder or nothing"):
        bring_back(tmp_path)
    assert (tmp_path / "new").read_bytes() == b"mine"


# ---- an old backup ----


def test_a_kept_checkpoint_tells_an_old_backup(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    at_the_backup = host.ledger.checkpoint().encode()
    host.ledger.append("build", "done", project="", body={})
    later = host.ledger.checkpoint().encode()
    with pytest.raises(LedgerBrokenError, match=r"expected at least the 20 entries .* got 19"):
        bring_back(tmp_path, kept=later)
    assert not (tmp_path / "new").exists()
    assert bring_back(tmp_path, kept=at_the_backup).manifest.entries == 19


def test_a_checkpoint_of_another_ledger_refuses_the_backup(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    other = open_at(tmp_path / "other")
    other.ledger.append("build", "done", project="", body={})
    with pytest.raises(LedgerBrokenError, match="expected one signature by"):
        bring_back(tmp_path, kept=other.ledger.checkpoint().encode())
    assert not (tmp_path / "new").exists()


def test_a_restored_state_can_be_backed_up_and_restored_again(host: Host, tmp_path: Path) -> None:
    save(host, tmp_path)
    bring_back(tmp_path)
    (tmp_path / "backup.tar").unlink()
    save(open_at(tmp_path / "new"), tmp_path)
    bring_back(tmp_path, place="newer")
    entries = open_at(tmp_path / "newer").ledger.entries()
    assert [entry.verb for entry in entries[-2:]] == ["restore", "restore"]
    assert [era.begun_by for era in open_at(tmp_path / "newer").ledger.verify().eras] == ["first"]
