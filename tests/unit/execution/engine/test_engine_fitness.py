"""An engine without limits runs no worker; and which user a worker gets on which engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import SandboxUnavailableError
from harness.execution.engine.fitness import check_limits
from harness.execution.engine.ids import MAX_ID, UNPRIVILEGED, maps_ids, worker_ids
from harness.execution.engine.port import EngineInfo
from tests.fakes.engine import FakeEngine

INFO = FakeEngine().info()
ROOTLESS = replace(
    INFO, rootless=True, security_options=("name=seccomp,profile=default", "name=rootless")
)
REMAPPED = replace(INFO, security_options=("name=seccomp,profile=default", "name=userns"))
NOBODY = (UNPRIVILEGED, UNPRIVILEGED)


def test_an_engine_with_all_limits_is_fit() -> None:
    check_limits(INFO)
    check_limits(ROOTLESS)


@pytest.mark.parametrize(
    ("info", "missing", "message", "hint"),
    [
        (INFO, ("swap",), "the engine can't limit swap on this host", "its kernel or its control"),
        (
            replace(ROOTLESS, cgroup_version=1),
            ("memory", "swap", "cpu", "pids"),
            "the rootless engine can't limit memory, swap, cpu and pids on this host",
            "control groups version 2",
        ),
        (
            ROOTLESS,
            ("cpu", "pids"),
            "the rootless engine can't limit cpu and pids on this host",
            "let systemd hand the controllers cpu, memory and pids to users",
        ),
    ],
)
def test_what_it_can_not_limit_is_named_with_the_way_out(
    info: EngineInfo, missing: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        check_limits(replace(info, missing_limits=missing))
    assert caught.value.message == f"engine: {message}, and no worker runs without limits"
    assert hint in caught.value.hint


@pytest.mark.parametrize("ids", [(1000, 1000), (2_000_000_000, 5), (MAX_ID, MAX_ID), NOBODY])
def test_a_worker_is_the_caller(ids: tuple[int, int]) -> None:
    assert worker_ids(INFO, *ids) == ids


@pytest.mark.parametrize("ids", [(MAX_ID + 1, 5), (5, MAX_ID + 1), (2**32 - 2, 2**32 - 2)])
def test_a_caller_whose_id_no_engine_takes_gets_an_unprivileged_worker(
    ids: tuple[int, int],
) -> None:
    assert worker_ids(INFO, *ids) == NOBODY


@pytest.mark.parametrize("info", [ROOTLESS, REMAPPED])
def test_on_an_engine_that_maps_ids_every_worker_is_unprivileged(info: EngineInfo) -> None:
    assert maps_ids(info)
    assert not maps_ids(INFO)
    assert worker_ids(info, 1000, 1000) == NOBODY
