"""Keeping house by its commands: keys, backups, projects. What is said, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.ledger.note import parse_vkey
from tests.e2e.old_bed import OldBed
from tests.fakes.old_state import OLD_ROOT


@pytest.fixture
def bed(tmp_path: Path) -> OldBed:
    return OldBed(tmp_path / "bed")


def vkey(bed: OldBed) -> str:
    return str(bed("key", "show", "--json").json()["keys"][-1]["key"])


def unchanged(bed: OldBed, *words: str, code: int, says: str) -> str:
    before = bed.files()
    done = bed(*words, code=code)
    assert says in done.err
    assert done.out == ""
    assert bed.files() == before
    return done.err


# ---- keys ----


def test_a_key_hands_over_and_whoever_holds_the_old_one_can_follow(bed: OldBed) -> None:
    first = vkey(bed)
    changed = bed("key", "rotate", "--json").json()
    assert (changed["old"], changed["entry"]) == (first, 19)
    told = bed("key", "rotate").out
    assert vkey(bed) in told.splitlines()
    shown = bed("key", "show").out
    assert first in shown.splitlines()
    assert shown.count("handed over by the one before") == 2
    assert (
        "follows from the one that you were given" in bed("ledger", "verify", "--vkey", first).out
    )
    keys = bed("ledger", "verify", "--json").json()["keys"]
    assert [key["begunBy"] for key in keys] == ["first", "rotate", "rotate"]
    assert [key["since"] for key in keys] == [0, 19, 20]
    assert {parse_vkey(key["key"]).name for key in keys} == {parse_vkey(first).name}


@pytest.mark.parametrize("given", ["", " "])
def test_a_key_or_checkpoint_that_is_empty_is_never_taken_for_none(
    bed: OldBed, tmp_path: Path, given: str
) -> None:
    """An unset variable of a script, or a file that was never written, must not pass as checked."""
    unchanged(bed, "ledger", "verify", "--vkey", given, code=2, says="verifier key: expected name")
    note = tmp_path / "kept.txt"
    note.write_text(given)
    says = "checkpoint: expected text"
    unchanged(bed, "ledger", "verify", "--checkpoint", str(note), code=3, says=says)


def test_a_lost_key_is_said_and_never_replaced_in_silence(bed: OldBed) -> None:
    first = vkey(bed)
    (bed.at.state / "host" / "key.pem").unlink()
    assert bed("ledger", "verify").code == 0
    assert "nothing can be signed" in bed("key", "show").out
    bed("project", "list")
    for words in (("key", "rotate"), ("project", "move", OLD_ROOT)):
        error = unchanged(bed, *words, code=3, says="key.pem is missing")
        assert "hint: put host/ back from a backup" in error
    unchanged(bed, "key", "renew", code=2, says="key: expected --lost")
    changed = bed("key", "renew", "--lost", "--json").json()
    assert changed["old"] == first
    verified = bed("ledger", "verify")
    assert "the host key had been lost and a new one took its place" in verified.out
    assert "the key was lost" in bed("ledger", "verify", "--vkey", first, code=3).err
    bed("ledger", "verify", "--vkey", changed["new"])
    bed("project", "move", OLD_ROOT)


def test_both_halves_lost(bed: OldBed) -> None:
    for name in ("key.pem", "key.vkey"):
        (bed.at.state / "host" / name).unlink()
    for words in (("ledger", "verify"), ("key", "show"), ("key", "rotate")):
        unchanged(bed, *words, code=3, says="host key: key.vkey is missing beside a ledger")
    assert bed("key", "renew", "--lost", "--json").json()["old"] == ""
    assert "(lost; nobody knows it any more)" in bed("key", "show").out
    assert bed("ledger", "verify").code == 0


@pytest.mark.parametrize("name", ["key.pem", "key.vkey"])
def test_a_damaged_half_is_named(bed: OldBed, name: str) -> None:
    (bed.at.state / "host" / name).write_bytes(b"garbage")
    unchanged(bed, "key", "rotate", code=3, says=f"{name} is ")


def test_a_key_that_is_there_is_not_renewed(bed: OldBed) -> None:
    error = unchanged(
        bed, "key", "renew", "--lost", code=2, says="is there, expected it to be lost"
    )
    assert "harness key rotate" in error


# ---- what was kept elsewhere ----


def test_a_kept_checkpoint_is_continued(bed: OldBed, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text(bed.ledger.checkpoint())
    bed("key", "rotate")
    assert "continues the checkpoint" in bed("ledger", "verify", "--checkpoint", str(kept)).out
    state = tmp_path / "cut"
    shutil.copytree(bed.at.state, state)
    state.chmod(0o700)
    later = tmp_path / "later"
    later.write_text(bed.ledger.checkpoint())
    shutil.rmtree(bed.at.state)
    shutil.move(state, bed.at.state)
    bed("key", "rotate")
    bed("ledger", "verify", "--checkpoint", str(later))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--checkpoint", "nowhere"), 2, "checkpoint: nowhere: No such file"),
        (("--checkpoint", "/dev/zero"), 2, "checkpoint: /dev/zero: expected a regular file"),
        (("--checkpoint", "README.md"), 3, "checkpoint: expected text, an empty line"),
        (("--vkey", "garbage"), 2, "verifier key: expected name+id+base64"),
        (
            (
                "--vkey",
                "sealed-harness/34750f98bd59fcfc+56074e0f+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c",
            ),
            3,
            "the key sealed-harness/34750f98bd59fcfc+56074e0f never signed for it",
        ),
    ],
)
def test_what_was_kept_and_is_not_right(
    bed: OldBed, words: tuple[str, str], code: int, says: str
) -> None:
    unchanged(bed, "ledger", "verify", *words, code=code, says=says)


# ---- backup and restore ----


def test_a_backup_and_its_restore_say_what_matters(bed: OldBed, tmp_path: Path) -> None:
    file, new = str(tmp_path / "b.tar"), tmp_path / "new"
    made = bed("state", "backup", file, "--json").json()
    assert (made["entries"], made["withKey"], made["key"]) == (19, False, vkey(bed))
    restored = bed("state", "restore", file, "--json", state=new).json()
    assert restored["state"] == str(new)
    assert "key.pem is missing" in restored["problem"]
    assert [item["root"] for item in restored["lostProjects"]] == [OLD_ROOT]
    assert restored["missingImages"] is None
    again = bed("state", "restore", file, state=new, code=6)
    assert "expected nothing in" in again.err
    told = bed("state", "restore", file, state=tmp_path / "newer").out
    for words in (
        "19 ledger lines",
        f"signed by {vkey(bed)}",
        f"what was done after {made['created']} is not in it",
        "compare with a checkpoint that you kept",
        "put host/key.pem back",
        "seal again what waits to be run",
        f"project sample is not at {OLD_ROOT}",
        "no engine answers to ask for the images",
    ):
        assert words in told


def test_an_older_backup_than_the_checkpoint_that_was_kept(bed: OldBed, tmp_path: Path) -> None:
    file, kept, new = str(tmp_path / "b.tar"), tmp_path / "kept", tmp_path / "new"
    bed("state", "backup", file, "--with-key")
    bed("key", "rotate")
    kept.write_text(bed.ledger.checkpoint())
    words = ("state", "restore", file, "--checkpoint", str(kept))
    refused = bed(*words, state=new, code=3)
    assert "expected at least the 20 entries of the kept checkpoint, got 19" in refused.err
    assert not new.exists()
    bed("state", "restore", file, state=new)
    assert "restored from a backup" in bed("ledger", "verify", state=new).out
    assert bed("key", "rotate", "--json", state=new).json()["entry"] == 20


def test_an_approval_from_before_the_restore_counts_no_more(bed: OldBed, tmp_path: Path) -> None:
    """It may have been used after the backup: nobody can tell, so a person says it anew."""
    bed("project", "move", OLD_ROOT)
    diff = bed("runs", "list", "--json").json()[2]["operations"][0]["diff"]
    bed("approve", diff, "--key", str(bed.at.key))
    bed("state", "backup", str(tmp_path / "b.tar"), "--with-key")
    bed("apply", diff)
    landed = (bed.at.project / "README.md").read_bytes()

    new = tmp_path / "new"
    bed("state", "restore", str(tmp_path / "b.tar"), state=new)
    error = bed("apply", diff, state=new, code=4).err
    assert "ada (came before the state was restored from a backup)" in error
    assert (bed.at.project / "README.md").read_bytes() == landed
    (bed.at.project / "README.md").write_text("# one\n")
    (bed.at.project / "new" / "two.txt").unlink()
    bed("approve", diff, "--key", str(bed.at.key), state=new)
    bed("apply", diff, state=new)
    assert (bed.at.project / "README.md").read_bytes() == landed


# ---- projects ----


def test_a_moved_folder_asks_and_keeps_everything(bed: OldBed, tmp_path: Path) -> None:
    error = unchanged(bed, "runs", "list", code=2, says="'sample' is no longer where it was")
    assert "harness project move" in error
    assert "harness project add" in error
    moved = bed("project", "move", OLD_ROOT, "--json").json()
    assert (moved["old"], moved["root"]) == (OLD_ROOT, str(bed.at.project))
    assert len(bed("runs", "list", "--json").json()) == 3
    assert bed("project", "list", "--json").json()[0]["place"] == "here"
    assert "here" in bed("project", "list").out
    unchanged(bed, "project", "move", OLD_ROOT, code=2, says="is none of this host")


def test_a_namesake_is_added_and_begins_anew(bed: OldBed) -> None:
    added = bed("project", "add", "--json").json()
    assert bed("runs", "list", "--json").json() == []
    known = {item["id"]: item["place"] for item in bed("project", "list", "--json").json()}
    assert known.pop(added["id"]) == "here"
    assert set(known.values()) == {"gone"}
    unchanged(bed, "project", "add", code=2, says="is known as")
