"""A backup or a restore whose process is killed at every point: whole, or not there at all."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from harness.flows.backup import back_up
from harness.flows.restore import restore_state
from harness.flows.restored import MARK, settle_restore
from harness.flows.session import open_host
from tests.fakes.kill import kill_at
from tests.fakes.old_state import unpack_old_state


def test_a_killed_restore_is_whole_or_not_there(tmp_path: Path) -> None:
    old = unpack_old_state(tmp_path / "old")
    file = tmp_path / "b.tar"
    back_up(open_host({"HARNESS_STATE": str(old.state)}), file, with_key=True)
    seen = set()
    for point in count(1):
        place = tmp_path / str(point) / "state"
        environment = {"HARNESS_STATE": str(place)}
        killed = kill_at(point, lambda: restore_state(file, environment=environment))  # noqa: B023
        is_there = place.exists()
        seen.add((is_there, (place / MARK).exists()))
        if not is_there:
            restore_state(file, environment=environment)
        host = open_host(environment)
        settle_restore(host)
        report = host.ledger.verify()
        assert (report.size, host.ledger.entries()[-1].verb) == (20, "restore")
        assert [path.name for path in place.parent.iterdir()] == ["state"]
        if not killed:
            break
    assert seen == {(False, False), (True, True), (True, False)}


def test_a_killed_backup_is_whole_or_not_there(tmp_path: Path) -> None:
    old = unpack_old_state(tmp_path / "old")
    host = open_host({"HARNESS_STATE": str(old.state)})
    for point in count(1):
        file = tmp_path / str(point) / "b.tar"
        file.parent.mkdir()
        if not kill_at(point, lambda: back_up(host, file, with_key=True)):  # noqa: B023
            break
        if file.exists():
            place = tmp_path / str(point) / "state"
            restore_state(file, environment={"HARNESS_STATE": str(place)})
    assert point > 2
