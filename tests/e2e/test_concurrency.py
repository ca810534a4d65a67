"""What docs/reference/concurrency.md says of commands that run at the same time, done for real."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.execution.image.lock import lock_bytes, read_lock
from harness.model.digest import digest_of
from tests.e2e.conftest import At
from tests.e2e.driver import SECONDS, Bed

pytestmark = pytest.mark.docker


def all_at_once(bed: Bed, *commands: Sequence[str]) -> list[tuple[int, str]]:
    """Start commands together; return exit code and stderr of each, by exit code."""
    started = [bed.start(*words) for words in commands]
    return sorted(end(process) for process in started)


def end(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, err = process.communicate(timeout=SECONDS)
    assert b"Traceback" not in err
    return process.returncode, err.decode()


def await_verb(bed: Bed, verb: str) -> None:
    until = time.monotonic() + SECONDS
    while verb not in bed.verbs():
        assert time.monotonic() < until, f"{verb} never came"
        time.sleep(0.05)


def lock_an_image_that_is_gone(bed: Bed) -> None:
    """Let images.lock name one more image, which the engine does not have."""
    locked = read_lock(bed.state / "images.lock")
    image = replace(locked["python"].image, name="gone", image_id=digest_of(b"gone"))
    locked["gone"] = replace(locked["python"], image=image)
    (bed.state / "images.lock").write_bytes(lock_bytes(locked))


def test_a_grant_that_another_run_took_is_refused_as_such(at: At) -> None:
    bed = at("plan approved")
    plan = bed.facts["plan"]
    (won, _), (lost, why) = all_at_once(bed, ("run", plan), ("run", plan))
    assert (won, lost) in ((0, 4), (0, 6))
    assert "spent already" in why or "another controller holds it" in why
    assert bed.verbs().count("run.intent") == bed.verbs().count("run.done") == 1


def test_a_diff_that_another_apply_landed_is_refused_as_such(at: At) -> None:
    """And never as if a stranger had changed the project below it."""
    bed = at("diff approved")
    diff = bed.facts["diff"]
    (won, _), (lost, why) = all_at_once(bed, ("apply", diff), ("apply", diff))
    assert (won, lost) == (0, 4)
    assert "spent already" in why or "landed already" in why
    assert bed.verbs().count("apply.intent") == bed.verbs().count("apply.done") == 1


def test_seals_and_approvals_side_by_side_all_count(at: At) -> None:
    bed = at("sealed")
    plan = bed.facts["plan"]
    ends = all_at_once(
        bed,
        ("seal", "few"),
        ("seal", "nothing"),
        ("approve", plan, "--key", str(bed.key("ada"))),
        ("approve", plan, "--key", str(bed.key("bob"))),
        ("ledger", "verify"),
        ("plan", "list"),
    )
    assert [code for code, _ in ends] == [0] * 6
    assert sorted(bed.verbs()) == ["approve.done"] * 2 + ["seal.done"] * 3
    assert len({entry.body["nonce"] for entry in bed.entries() if entry.verb == "seal"}) == 3


def test_while_a_run_goes_on_others_look_back_up_and_change_the_key(at: At) -> None:
    bed = at("plan approved")
    lock_an_image_that_is_gone(bed)
    run = bed.start("run", bed.facts["plan"])
    await_verb(bed, "run.intent")
    file = str(bed.home / "during.tar")
    ends = all_at_once(
        bed,
        ("ledger", "verify"),
        ("runs", "list"),
        ("state", "backup", file, "--with-key"),
        ("key", "rotate"),
    )
    assert [code for code, _ in ends] == [0] * 4, ends
    assert end(run)[0] == 0
    report = bed.ledger.verify()
    assert [era.begun_by for era in report.eras] == ["first", "rotate"]
    assert report.warnings == ()

    place = str(bed.home / "restored")
    restored = bed("state", "restore", file, "--json", HARNESS_STATE=place).json()
    assert restored["missingImages"] == ["gone"]
    bed("ledger", "verify", HARNESS_STATE=place)
    (found,) = bed("runs", "list", "--json", HARNESS_STATE=place).json()
    ended = found["kind"] != "running"
    told = bed("seal", "few", HARNESS_STATE=place).err
    # Here that run has no controller: when the backup caught it at work, it is said to be over.
    assert ended or "its controller died; recorded as interrupted" in told
