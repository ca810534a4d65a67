"""The state of an earlier version, opened by this one; and one of a later version, left alone.

The earlier state was written by the code of its time (tests/fixtures/state_v1/make.py): plans,
records and entries of v1, one diff that landed and was undone, one failed run, one diff that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.canonical import canonical_bytes, parse_json
from harness.model.digest import Digest, digest_of
from tests.e2e.old_bed import OldBed
from tests.fakes.old_state import OLD_ROOT


@pytest.fixture
def old(tmp_path: Path) -> OldBed:
    """Return the earlier state with its project where it is now."""
    found = OldBed(tmp_path / "old")
    refused = found("runs", "list", code=2)
    assert "'sample' is no longer where it was" in refused.err
    assert "harness project move" in refused.err
    found("project", "move", OLD_ROOT)
    return found


def test_every_line_of_it_still_verifies(tmp_path: Path) -> None:
    old = OldBed(tmp_path / "old")
    before = old.files()
    report = old("ledger", "verify", "--json").json()
    assert (report["size"], report["warnings"]) == (19, [])
    assert [key["begunBy"] for key in report["keys"]] == ["first"]
    assert len(old("ledger", "list", "--json").json()) == 19
    assert old("project", "list", "--json").json()[0]["place"] == "gone"
    assert old.files() == before


def test_its_runs_plans_and_diffs_can_be_looked_at(old: OldBed) -> None:
    runs = old("runs", "list", "--json").json()
    assert [run["outcome"] for run in runs] == ["passed", "failed(3)", "passed"]
    for run in runs:
        assert old("runs", "show", run["run"]).out
        assert "doing" in old("runs", "logs", run["run"]).out
        plan = old("plan", "show", run["run"], "--json").json()
        assert old("plan", "show", plan["plan"][7:27]).out
    plans = old("plan", "list", "--json").json()
    assert [plan["status"] for plan in plans] == ["used", "used", "used"]
    assert "+# two" in old("diff", runs[2]["run"], "--patch").out


def test_its_records_keep_their_bytes(old: OldBed) -> None:
    """A plan or record of v1 is read as v1: its hash, which people signed, stays what it was."""
    for entry in old.ledger.entries():
        for member in ("plan", "record", "diff", "statement"):
            digest = entry.body.get(member)
            if digest:
                assert digest_of(old.host.blobs.get(Digest(digest))) == digest


def waiting(old: OldBed) -> str:
    return str(old("runs", "list", "--json").json()[2]["operations"][0]["diff"])


def test_a_diff_that_waits_is_approved_and_lands(old: OldBed) -> None:
    diff = waiting(old)
    assert old("apply", diff, code=4).out == ""
    old("approve", diff, "--key", str(old.at.key))
    old("apply", diff)
    assert (old.at.project / "README.md").read_text() == "# two\n"
    assert (old.at.project / "new" / "two.txt").read_text() == "new\n"
    assert "landed already" in old("apply", diff, code=4).err
    old("undo", diff)
    assert old.ledger.verify().warnings == ()


def test_a_reverse_that_waits_lands_too(old: OldBed) -> None:
    reverse = next(e for e in old.ledger.entries() if e.verb == "undo").body["diff"]
    old("approve", reverse, "--key", str(old.at.key))
    old("apply", reverse)
    assert (old.at.project / "README.md").read_text() == "# Sample\n"


def test_an_approval_that_was_used_stays_used(old: OldBed) -> None:
    for plan in old("plan", "list", "--json").json():
        assert "is spent already" in old("run", plan["plan"], code=4).err


def test_it_goes_on_as_a_state_of_today(old: OldBed, tmp_path: Path) -> None:
    lines = (old.at.state / "ledger" / "entries.jsonl").read_bytes()
    kept = tmp_path / "kept"
    kept.write_text(old.ledger.checkpoint())
    vkey = (old.at.state / "host" / "key.vkey").read_text()
    old("key", "rotate")
    old("state", "backup", str(tmp_path / "b.tar"))
    old("ledger", "verify", "--checkpoint", str(kept), "--vkey", vkey)
    assert (old.at.state / "ledger" / "entries.jsonl").read_bytes().startswith(lines)


# ---- a later version ----


def raise_version(data: bytes) -> bytes:
    value = parse_json(data)
    stem, _, _ = value["_type"].rpartition("/")
    return canonical_bytes({**value, "_type": f"{stem}/v9"})


def newer_line(old: OldBed) -> None:
    path = old.at.state / "ledger" / "entries.jsonl"
    *_, last = path.read_bytes().splitlines()
    path.write_bytes(path.read_bytes() + raise_version(last) + b"\n")


def newer_object(verb: str, member: str) -> Callable[[OldBed], None]:
    def plant(old: OldBed) -> None:
        entries = old.ledger.entries()
        found = next(e for e in reversed(entries) if e.verb == verb and e.body.get(member))
        data = raise_version(old.host.blobs.get(Digest(found.body[member])))
        body = {**found.body, member: old.host.blobs.put(data)}
        old.ledger.append(found.verb, found.phase, project=found.project, body=body)

    return plant


def newer_file(name: str) -> Callable[[OldBed], None]:
    def plant(old: OldBed) -> None:
        (path,) = old.at.state.glob(name)
        path.write_bytes(raise_version(path.read_bytes()))

    return plant


LATER: dict[str, tuple[Callable[[OldBed], None], tuple[str, ...]]] = {
    "entry": (newer_line, ("ledger", "verify")),
    "entry, to write": (newer_line, ("key", "rotate")),
    "plan": (newer_object("seal", "plan"), ("plan", "list")),
    "record": (newer_object("run", "record"), ("runs", "show", "RUN")),
    "project": (newer_file("projects/*/project.json"), ("runs", "list")),
    "images": (newer_file("images.lock"), ("image", "verify", "python")),
}


@pytest.mark.parametrize("name", LATER)
def test_what_a_later_version_wrote_is_refused_and_left_as_it_is(old: OldBed, name: str) -> None:
    plant, words = LATER[name]
    plant(old)
    before = old.files()
    run = old.ledger.entries()[-1].body["run"] if "RUN" in words else ""
    done = old(*(run if word == "RUN" else word for word in words), code=6)
    assert "version 9" in done.err
    assert "hint: upgrade harness on this host; nothing was written" in done.err
    assert done.out == ""
    assert old.files() == before
