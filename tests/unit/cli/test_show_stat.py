"""What the head of a diff says of its chance to land."""

from __future__ import annotations

import pytest

from harness.cli.show_diff import print_stat
from harness.flows.history import Quarantined
from harness.flows.quarantined import Quarantine
from harness.model.changeset import Changeset
from harness.model.digest import digest_of
from harness.model.quarantine_record import QuarantineRecord

ZERO = digest_of(b"")


def quarantine(outcome: str, landed: str) -> Quarantine:
    summary = Quarantined(
        diff=ZERO,
        run="r",
        operation="o",
        plan=ZERO,
        record=ZERO,
        nonce="n",
        undoes="",
        waiting_since="",
        landed=landed,
        changes=0,
    )
    record = QuarantineRecord(
        run="r",
        plan=ZERO,
        outcome=outcome,
        diff=ZERO,
        by_products=ZERO,
        flags=(),
        missing=(),
        undoes="",
    )
    changeset = Changeset(base=ZERO, result=ZERO, changes=())
    return Quarantine(
        summary=summary, record=record, changeset=changeset, by_products=(), obstacles=()
    )


@pytest.mark.parametrize(
    ("outcome", "landed", "told"),
    [
        ("passed", "", "of run r (passed); waits in quarantine"),
        ("passed", "then", "of run r (passed); landed then"),
        ("cancelled", "", "of run r (cancelled); kept in quarantine; can't land"),
        ("failed", "", "of run r (failed); kept in quarantine; can't land"),
    ],
)
def test_only_what_passed_is_said_to_wait(
    capsys: pytest.CaptureFixture[str], outcome: str, landed: str, told: str
) -> None:
    print_stat(quarantine(outcome, landed))
    assert told in capsys.readouterr().out.splitlines()
