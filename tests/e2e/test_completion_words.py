"""What is offered at each station of the main job: hashes, run ids, images, reviewers."""

from __future__ import annotations

import pytest

from harness.cli.completion import VARIABLE
from tests.e2e.conftest import At
from tests.e2e.driver import Bed, borrowed_environment, listing, run_here

pytestmark = pytest.mark.docker


def offered(bed: Bed, line: str) -> list[str]:
    """Return the words offered, and require that asking changed nothing."""
    before = listing(bed.project), listing(bed.state)
    question = {VARIABLE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": ""}
    with borrowed_environment({**bed.environment, **question}, bed.project):
        done = run_here()
    assert (done.code, done.err) == (0, "")
    assert (listing(bed.project), listing(bed.state)) == before
    return [word.partition(",")[2] for word in done.out.splitlines() if word]


def test_nothing_is_there_yet(at: At) -> None:
    bed = at("begun")
    assert {"few", "test"} <= set(offered(bed, "harness seal "))
    assert offered(bed, "harness seal few tes") == ["test"]
    assert offered(bed, "harness approve ") == []
    assert offered(bed, "harness runs show ") == []
    assert offered(bed, "harness image verify p") == ["python"]
    assert offered(bed, "harness approve --reviewer ") == ["ada", "bob", "cy"]


def test_a_plan_waits(at: At) -> None:
    bed = at("sealed")
    plan = bed.facts["plan"]
    assert offered(bed, "harness approve ") == [plan]
    assert offered(bed, f"harness approve {plan[:12]}") == [plan]
    assert offered(bed, f"harness approve {plan[7:12]}") == [plan.removeprefix("sha256:")]
    assert offered(bed, "harness run sha") == [plan]
    assert offered(bed, f"harness plan show -C {bed.project} ") == [plan]


def test_a_diff_waits(at: At) -> None:
    bed = at("ran")
    assert offered(bed, "harness approve ") == [bed.facts["diff"]]
    assert offered(bed, "harness apply ") == [bed.facts["diff"]]
    assert offered(bed, "harness undo ") == []
    assert offered(bed, "harness diff 2") == [bed.facts["run"]]
    assert offered(bed, "harness runs logs ") == [bed.facts["run"]]


def test_a_diff_landed(at: At) -> None:
    bed = at("applied")
    assert offered(bed, "harness undo ") == [bed.facts["diff"]]
    assert offered(bed, "harness apply ") == []


@pytest.mark.parametrize("damage", [b"", b"garbage\n", b"{}\n", b"\xff\n"])
def test_a_broken_ledger_offers_nothing(at: At, damage: bytes) -> None:
    bed = at("ran")
    (bed.state / "ledger" / "entries.jsonl").write_bytes(damage)
    assert offered(bed, "harness approve ") == []
    assert "few" in offered(bed, "harness seal ")


def test_only_the_newest_of_a_long_ledger_is_read(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    bed = at("ran")
    monkeypatch.setattr("harness.flows.candidates.TAIL_BYTES", 600)
    assert offered(bed, "harness runs show ") == []
    monkeypatch.setattr("harness.flows.candidates.TAIL_BYTES", 1 << 20)
    assert offered(bed, "harness runs show ") == [bed.facts["run"]]
