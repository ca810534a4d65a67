"""Setup: from what this host has to an engine that answers, and back again.

Rules:
    * The plan is made first, from facts alone, and said. A step outside our own folders needs
      consent; without it nothing of that step happens.
    * On a host with an engine that answers, no engine is installed or started.
    * What is added is on record before it is there, so that undo takes back exactly that, after a
      crash too. An engine that was there before is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import EngineUnreachableError, SandboxUnavailableError
from harness.execution.host import packages
from harness.execution.host.command import find_program, host_environment, run_command
from harness.execution.host.daemon import remove_own_engine, start_own_engine
from harness.execution.host.find import EngineAddress, find_engine
from harness.execution.host.setup_record import (
    SetupRecord,
    deny_service_starts,
    read_record,
    remove_record,
    write_record,
)
from harness.store.state import StateFolder

SERVICE_SECONDS = 90
SYSTEMD = Path("/run/systemd/system")
"""There while systemd is the init system: sd_booted(3)."""

_ENGINE_PROGRAMS = ("dockerd", "iptables")
_BUILD_PROGRAMS = ("debootstrap", "gpgv")

Kind = Literal["install", "start-service", "start-own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What a plan is made from.

    Attributes:
        uid: effective user id.
        engine: the engine that answers, if one does.
        why_none: why none does.
        chosen: the user chose an address by DOCKER_HOST.
        apt: the host has apt-get and dpkg.
        systemd: systemd runs.
        missing_for_engine: packages to install before an engine can run here.
        missing_for_images: packages to install before images can be built here.
    """

    uid: int
    engine: EngineAddress | None
    why_none: EngineUnreachableError | None
    chosen: bool
    apt: bool
    systemd: bool
    missing_for_engine: tuple[str, ...]
    missing_for_images: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan.

    Attributes:
        kind: what it does.
        text: the same for people; consent is given to it.
        outside: it changes something outside our own folders.
        packages: what an installation asks for.
    """

    kind: Kind
    text: str
    outside: bool
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupContext:
    """What carrying out a plan needs.

    Attributes:
        state: of this host.
        environment: of the caller.
        report: is told what happens now.
        consent: asked before each step outside our own folders.
    """

    state: StateFolder
    environment: Mapping[str, str]
    report: Callable[[str], None]
    consent: Callable[[str], bool]

    @property
    def log(self) -> Path:
        """Return the file that takes what programs print."""
        return self.state.root / "setup.log"


def gather_facts(environment: Mapping[str, str], state: StateFolder, *, uid: int) -> HostFacts:
    """Look at this host; changes nothing.

    Raises:
        InputError: DOCKER_HOST is malformed.
    """
    engine, why_none = None, None
    try:
        engine = find_engine(environment, state)
    except EngineUnreachableError as error:
        why_none = error
    return HostFacts(
        uid=uid,
        engine=engine,
        why_none=why_none,
        chosen=bool(environment.get("DOCKER_HOST")),
        apt=bool(find_program("apt-get") and find_program("dpkg-query")),
        systemd=SYSTEMD.is_dir(),
        missing_for_engine=packages.missing_packages(_ENGINE_PROGRAMS, find_program),
        missing_for_images=packages.missing_packages(_BUILD_PROGRAMS, find_program),
    )


def plan_setup(facts: HostFacts, *, for_images: bool = False) -> tuple[Step, ...]:
    """Return the steps to an engine that answers; none when one does.

    A host that needs an engine gets what building images needs along with it.

    Args:
        facts: what this host has.
        for_images: also what building images needs, on a host with an engine. A plain user gets
            no step for it: building images needs root, and says so itself.

    Raises:
        EngineUnreachableError: the engine that DOCKER_HOST names does not answer.
        SandboxUnavailableError: steps are needed that this user or this host can't take.
    """
    if facts.engine is not None:
        can = for_images and facts.uid == 0 and facts.apt
        return _install_step(facts.missing_for_images if can else ())
    if facts.chosen and facts.why_none is not None:
        raise facts.why_none
    missing = tuple(sorted({*facts.missing_for_engine, *facts.missing_for_images}))
    issues = facts.why_none.issues if facts.why_none else ()
    if facts.uid != 0:
        wanted = f"apt-get install {' '.join(missing)}; " if missing else ""
        raise SandboxUnavailableError(
            f"setup: expected user 0 to install or start an engine, got {facts.uid}",
            hint=f"ask an administrator for: {wanted}a running Docker Engine; and to add you to "
            "the group docker",
            issues=issues,
        )
    if missing and not facts.apt:
        raise SandboxUnavailableError(
            f"setup: missing on this host: {', '.join(missing)}; and there is no apt-get",
            hint="install Docker Engine and debootstrap the way this system does it",
            issues=issues,
        )
    return (*_install_step(missing), _start_step(systemd=facts.systemd))


def run_setup(steps: tuple[Step, ...], context: SetupContext) -> EngineAddress:
    """Carry out a plan.

    Args:
        steps: by `plan_setup`.
        context: what it needs.

    Returns:
        The engine that answers now.

    Raises:
        SandboxUnavailableError: no consent, or the engine can't be started.
        EngineUnreachableError: no engine answers at the end.
        AcquisitionError: packages can't be had.
        VerificationError: the record of an earlier setup is damaged.
        StateError: the state folder can't be written.
    """
    for step in steps:
        if step.outside and not context.consent(step.text):
            raise SandboxUnavailableError(
                f"setup: not permitted: {step.text}",
                hint="nothing of it was done; give --yes, or ask an administrator to do it",
            )
        context.report(step.text)
        if step.kind == "install":
            _install(step.packages, context)
        elif step.kind == "start-service":
            _start_service(context)
        else:
            start_own_engine(context.state, environment=context.environment, report=context.report)
    return find_engine(context.environment, context.state)


def undo_setup(context: SetupContext) -> tuple[str, ...]:
    """Take back what setup did on this host: our own engine, and packages that it added.

    Returns:
        What was taken back, for people; empty when there was nothing.

    Raises:
        SandboxUnavailableError: no consent, or something else hangs on the packages.
        AcquisitionError: apt fails.
        VerificationError: the record is damaged.
        StateError: the state folder can't be written.
    """
    done = []
    record = read_record(context.state)
    if record.packages:
        text = f"remove the packages that setup added: {', '.join(record.packages)}"
        if not context.consent(text):
            raise SandboxUnavailableError(f"setup: not permitted: {text}", hint="give --yes")
    context.report("stop our own engine and remove its data")
    if remove_own_engine(context.state, environment=context.environment):
        done.append("our own engine, with its images and containers")
    if record.packages:
        context.report(f"remove {len(record.packages)} packages")
        packages.purge(record.packages, context.environment, context.log)
        done.append(f"packages: {', '.join(record.packages)}")
    remove_record(context.state)
    return tuple(done)


def _install_step(missing: tuple[str, ...]) -> tuple[Step, ...]:
    if not missing:
        return ()
    text = f"install {', '.join(missing)} with apt-get, and what they depend on"
    return (Step(kind="install", text=text, outside=True, packages=missing),)


def _start_step(*, systemd: bool) -> Step:
    if systemd:
        return Step(
            kind="start-service", text="start the service docker with systemctl", outside=True
        )
    return Step(
        kind="start-own",
        text="start a Docker Engine of our own, with its data in the state folder",
        outside=False,
    )


def _install(wanted: tuple[str, ...], context: SetupContext) -> None:
    """Record what apt will add, let it, record what it did add."""
    environment, state = context.environment, context.state
    packages.refresh(environment, context.log)
    argv = packages.install_argv(wanted)
    added = packages.parse_added(packages.simulate(argv, environment))
    context.report(f"apt-get adds {len(added)} packages: {', '.join(added)}")
    before = packages.installed(environment)
    record = read_record(state)
    write_record(state, SetupRecord(packages=tuple(sorted({*record.packages, *added}))))
    if SYSTEMD.is_dir():
        packages.install(wanted, environment, context.log)
    else:
        with deny_service_starts(state):
            packages.install(wanted, environment, context.log)
    really = packages.installed(environment) - before
    write_record(state, SetupRecord(packages=tuple(sorted({*record.packages, *really}))))


def _start_service(context: SetupContext) -> None:
    run_command(
        ("systemctl", "start", "docker"),
        what="systemctl start docker",
        environment=host_environment(context.environment),
        seconds=SERVICE_SECONDS,
        log=context.log,
    )
