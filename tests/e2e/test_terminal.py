"""A person at a terminal: seal, see and approve in one go, or sign elsewhere with stock tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.model.approval import NAMESPACES
from tests.e2e.conftest import At
from tests.e2e.driver import Bed, untouched
from tests.e2e.project import approve, run, seal
from tests.e2e.terminal import Person

pytestmark = pytest.mark.docker


def test_run_seals_shows_asks_and_runs(bed: Bed) -> None:
    with untouched(bed):
        person = Person(bed, "run", "few", "--key", str(bed.key("ada")))
        person.wait_for("? [y/N]: ")
        shown = person.seen.decode()
        assert "1. python3 tool.py few" in shown
        assert "waiting for approval" in shown
        assert bed.verbs() == ["seal.done"], "nothing is approved before the answer"
        person.type("y\n")
        code, text = person.end()
    assert code == 0
    assert ": passed" in text
    assert "next: harness diff " in text
    assert bed.verbs()[:3] == ["seal.done", "approve.done", "run.intent"]


@pytest.mark.parametrize(
    ("answer", "expected", "says"),
    [("n\n", 4, "it still waits"), ("\n", 4, "it still waits"), ("\x04", 130, "interrupted")],
)
def test_any_other_answer_runs_nothing(bed: Bed, answer: str, expected: int, says: str) -> None:
    with untouched(bed):
        person = Person(bed, "run", "few", "--key", str(bed.key("ada")))
        person.wait_for("? [y/N]: ")
        person.type(answer)
        code, text = person.end()
    assert code == expected
    assert says in text
    assert bed.verbs() == ["seal.done"]


def test_the_usual_key_is_found(at: At) -> None:
    bed = at("ran")
    keys = bed.home / ".ssh"
    keys.mkdir()
    try:
        for name in ("ada", "ada.pub"):
            shutil.copy(bed.key(name), keys / name.replace("ada", "id_ed25519"))
        person = Person(bed, "approve", bed.facts["diff"])
        person.wait_for(f"with {keys / 'id_ed25519'}? [y/N]: ")
        assert b"\x1b[32m+# Changed" in person.seen, "the diff is shown, in colours"
        person.type("y\n")
        code, text = person.end()
    finally:
        shutil.rmtree(keys)
    assert code == 0
    assert "approved by ada: diff sha256:" in text
    bed("apply", bed.facts["diff"])


def test_a_statement_is_signed_elsewhere_with_stock_tools_and_brought_back(at: At) -> None:
    bed = at("sealed")
    plan = bed.facts["plan"]
    with untouched(bed):
        statement = _sign_as_told(bed, plan, "ada", NAMESPACES["plan"])
        received = bed("approve", plan, "--statement", statement, "--signature", f"{statement}.sig")
        assert f"approved by ada: plan {plan}" in received.out
        diff = run(bed, plan)
        statement = _sign_as_told(bed, diff, "bob", NAMESPACES["diff"])
        bed("approve", diff, "--statement", statement, "--signature", f"{statement}.sig")
        _verify_with_stock_tools(bed, Path(statement), "bob", NAMESPACES["diff"])
    bed("apply", diff)


def _sign_as_told(bed: Bed, digest: str, reviewer: str, namespace: str) -> str:
    """Follow the line that the command prints, word for word."""
    statement = bed.home / f"{reviewer}.json"
    statement.unlink(missing_ok=True)
    written = bed(
        "approve", digest, "--write-statement", str(statement), "--reviewer", reviewer
    ).out
    told = written.splitlines()[0].removeprefix("sign it:").split()
    assert told == ["ssh-keygen", "-Y", "sign", "-f", "KEY", "-n", namespace, str(statement)]
    signature = statement.with_name(f"{statement.name}.sig")
    signature.unlink(missing_ok=True)
    told[told.index("KEY")] = str(bed.key(reviewer))
    subprocess.run(told, check=True, capture_output=True)
    return str(statement)


def _verify_with_stock_tools(bed: Bed, statement: Path, reviewer: str, namespace: str) -> None:
    reviewers = bed.project / "policies" / "reviewers"
    words = ("-Y", "verify", "-f", reviewers, "-I", reviewer, "-n", namespace)
    with statement.open("rb") as stream:
        subprocess.run(
            ["ssh-keygen", *words, "-s", f"{statement}.sig"],
            stdin=stream,
            check=True,
            capture_output=True,
        )


def test_a_workers_output_cannot_drive_the_terminal(bed: Bed) -> None:
    plan = seal(bed, "noisy")
    approve(bed, plan)
    code, text = Person(bed, "run", plan).end()
    assert code == 0
    assert "\\x1b[2J\\x1b]0;owned\\x07\\u202eback" in text
    assert "\\x1b[31mred\\x1b[0m" in text
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text
    assert "\x1b[31mred" not in text
    assert "\x07" not in text
    run_id = str(bed.entries()[-1].body["run"])
    assert "\\x1b[2J" in bed("runs", "logs", run_id).out
    raw = bed("runs", "logs", run_id, "--raw").raw
    assert raw == "\x1b[2J\x1b]0;owned\x07\u202eback\n".encode()


def test_a_workers_output_cannot_speak_to_the_ci_service(bed: Bed) -> None:
    plan = seal(bed, "noisy")
    approve(bed, plan)
    lines = bed("run", plan, GITHUB_ACTIONS="true").out.splitlines()
    (begin,) = (line for line in lines if line.startswith("::stop-commands::"))
    assert f"::{begin.removeprefix('::stop-commands::')}::" in lines
