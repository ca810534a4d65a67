"""How a run record reads: which workspace it had, and what a failed recipe is told."""

from __future__ import annotations

import dataclasses

import pytest

from harness.cli.show_run import print_record, record_json
from harness.model.digest import digest_of
from harness.model.outcome import Outcome, OutcomeKind, StepReport
from harness.model.run_record import RENAME_HINT, RunRecord, StreamRecord

STREAM = StreamRecord(
    digest=digest_of(b""),
    kept=digest_of(b""),
    total_bytes=0,
    head_bytes=0,
    tail_bytes=0,
    truncated=False,
)
RECORD = RunRecord(
    run="r",
    operation="o",
    plan=digest_of(b"p"),
    seal=digest_of(b"s"),
    outcome=Outcome(kind="failed", code=1),
    started="2026-01-01T00:00:00.000Z",
    finished="2026-01-01T00:00:01.000Z",
    steps=(),
    stdout=STREAM,
    stderr=STREAM,
    checks={},
    artifacts=(),
    observed={},
    usage={
        "wall_ms": 1,
        "cpu_ms": "unavailable",
        "memory_peak_bytes": "unavailable",
        "pids_peak": "unavailable",
        "oom_kills": "unavailable",
    },
    workspace="overlay",
    workspace_reason="why",
    engine="1",
)


@pytest.mark.parametrize(
    ("kind", "workspace", "is_told"),
    [
        ("failed", "overlay", True),
        ("failed", "copy", False),
        ("passed", "overlay", False),
        ("timeout", "overlay", False),
    ],
)
def test_a_recipe_that_failed_on_the_overlay_is_told_of_the_copy(
    capsys: pytest.CaptureFixture[str], kind: OutcomeKind, workspace: str, is_told: bool
) -> None:
    record = dataclasses.replace(RECORD, outcome=Outcome(kind=kind), workspace=workspace)
    print_record(record, several=False)
    assert ("`workspace: copy` in the recipe allows it" in capsys.readouterr().out) == is_told
    assert record_json(record)["hint"] == (RENAME_HINT if is_told else "")


def test_a_program_that_never_began_is_not_told_of_the_copy() -> None:
    """It can't have renamed anything."""
    step = StepReport(index=0, exit=127, signal=None, exec_errno=2, duration_ms=0)
    assert dataclasses.replace(RECORD, steps=(step,)).hint == ""
    assert dataclasses.replace(RECORD, steps=(dataclasses.replace(step, exec_errno=0),)).hint


def test_a_copy_is_named_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    print_record(dataclasses.replace(RECORD, workspace="copy"), several=False)
    assert "a copy, because why" in capsys.readouterr().out
