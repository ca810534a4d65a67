"""Setup: an engine for this host, and back again."""

from __future__ import annotations

import os
from collections.abc import Callable

from harness.errors import StateError
from harness.execution.engine.fitness import check_limits
from harness.execution.engine.ids import maps_ids
from harness.execution.host.daemon import stop_own_engine
from harness.execution.host.find import EngineAddress
from harness.execution.host.setup import (
    SetupContext,
    Step,
    gather_facts,
    plan_setup,
    run_setup,
    undo_setup,
)
from harness.execution.worker.sweep import controller_lives
from harness.flows.engine import open_engine_at
from harness.flows.session import Host

_MAPPED = "it maps user ids, so files are copied to a worker and back"

Report = Callable[[str], None]
Consent = Callable[[str], bool]


def look_at_host(
    host: Host, *, for_images: bool = False
) -> tuple[EngineAddress | None, tuple[Step, ...]]:
    """Return the engine that answers, if one does, and the steps that are missing.

    Args:
        host: this host.
        for_images: also the steps to what building images needs.

    Raises:
        SandboxUnavailableError: steps are needed that this user or this host can't take.
    """
    facts = gather_facts(os.environ, host.state, uid=os.geteuid())
    return facts.engine, plan_setup(facts, for_images=for_images)


def set_up(
    host: Host, steps: tuple[Step, ...], *, report: Report, consent: Consent
) -> EngineAddress:
    """Take the steps.

    Raises:
        SandboxUnavailableError: no consent, or the engine can't be started.
        AcquisitionError: packages can't be had.
    """
    return run_setup(steps, _context(host, report, consent))


def examine_engine(address: EngineAddress) -> tuple[str, ...]:
    """Check that an engine which answers can run workers, by what it says of itself.

    Returns:
        What a user should know of it, for people.

    Raises:
        EngineUnreachableError: it does not answer any more.
        SandboxUnavailableError: it can't enforce the limits of a worker.
    """
    engine = open_engine_at(address)
    try:
        info = engine.info()
    finally:
        engine.close()
    check_limits(info)
    return (_MAPPED,) if maps_ids(info) else ()


def take_back(host: Host, *, report: Report, consent: Consent) -> tuple[str, ...]:
    """Take back what setup did on this host; return what that was.

    Raises:
        SandboxUnavailableError: no consent.
        AcquisitionError: apt fails.
    """
    return undo_setup(_context(host, report, consent))


def stop_engine(host: Host) -> bool:
    """Stop the engine that setup started, if it runs; its data stays.

    Raises:
        StateError: a run is under way.
        SandboxUnavailableError: it does not end.
    """
    live = [path.name for path in host.state.run("").iterdir() if controller_lives(path)]
    if live:
        raise StateError(
            f"engine: expected no run under way, got {', '.join(sorted(live))}",
            hint="wait for it to end, or end it with Ctrl-C where it was started",
        )
    return stop_own_engine(host.state, environment=os.environ)


def _context(host: Host, report: Report, consent: Consent) -> SetupContext:
    return SetupContext(state=host.state, environment=os.environ, report=report, consent=consent)
