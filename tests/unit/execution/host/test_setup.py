from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError, SandboxUnavailableError, VerificationError
from harness.execution.host.find import EngineAddress
from harness.execution.host.setup import (
    HostFacts,
    SetupContext,
    Step,
    plan_setup,
    run_setup,
    undo_setup,
)
from harness.execution.host.setup_record import (
    POLICY,
    SetupRecord,
    deny_service_starts,
    read_record,
    remove_record,
    write_record,
)
from harness.store.state import StateFolder, open_state

ENGINE = EngineAddress(url="unix:///var/run/docker.sock", origin="the system's engine")
NONE = EngineUnreachableError("engine: none on this host")


def facts(
    *,
    uid: int = 0,
    engine: EngineAddress | None = None,
    chosen: bool = False,
    apt: bool = True,
    systemd: bool = False,
    missing: tuple[str, ...] = (),
    missing_for_images: tuple[str, ...] = (),
) -> HostFacts:
    return HostFacts(
        uid=uid,
        engine=engine,
        why_none=None if engine else NONE,
        chosen=chosen,
        apt=apt,
        systemd=systemd,
        missing_for_engine=missing,
        missing_for_images=missing_for_images,
    )


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return open_state(tmp_path / "state")


def context(state: StateFolder, *, agree: bool) -> SetupContext:
    return SetupContext(state=state, environment={}, report=lambda _: None, consent=lambda _: agree)


def test_an_engine_that_answers_means_nothing_to_do() -> None:
    assert plan_setup(facts(engine=ENGINE, missing=("docker.io", "iptables"))) == ()
    assert plan_setup(facts(engine=ENGINE, uid=1000, missing_for_images=("debootstrap",))) == ()


def test_what_image_builds_need_is_installed_beside_an_engine_but_no_second_engine() -> None:
    host = facts(engine=ENGINE, missing=("docker.io",), missing_for_images=("debootstrap",))
    assert plan_setup(host) == ()
    (step,) = plan_setup(host, for_images=True)
    assert (step.kind, step.packages, step.outside) == ("install", ("debootstrap",), True)


def test_a_bare_host_gets_packages_with_consent_and_then_an_engine_of_our_own() -> None:
    install, start = plan_setup(facts(missing=("docker.io",), missing_for_images=("debootstrap",)))
    assert install == Step(
        kind="install",
        text="install debootstrap, docker.io with apt-get, and what they depend on",
        outside=True,
        packages=("debootstrap", "docker.io"),
    )
    assert (start.kind, start.outside) == ("start-own", False)


def test_where_systemd_runs_it_starts_the_service_and_that_needs_consent() -> None:
    (start,) = plan_setup(facts(systemd=True))
    assert (start.kind, start.outside) == ("start-service", True)


def test_a_plain_user_is_told_what_to_ask_for() -> None:
    with pytest.raises(SandboxUnavailableError, match="expected user 0") as caught:
        plan_setup(facts(uid=1000, missing=("docker.io",)))
    assert "ask an administrator for: apt-get install docker.io;" in caught.value.hint
    assert "group docker" in caught.value.hint


def test_without_apt_the_missing_programs_are_named() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"docker\.io; and there is no apt-get"):
        plan_setup(facts(apt=False, missing=("docker.io",)))


def test_the_engine_that_the_user_chose_is_never_replaced_by_another() -> None:
    with pytest.raises(EngineUnreachableError):
        plan_setup(facts(chosen=True))


def test_without_consent_nothing_happens(state: StateFolder) -> None:
    steps = plan_setup(facts(missing=("docker.io",)))
    before = sorted(state.root.rglob("*"))
    with pytest.raises(SandboxUnavailableError, match="not permitted: install docker") as caught:
        run_setup(steps, context(state, agree=False))
    assert "--yes" in caught.value.hint
    assert sorted(state.root.rglob("*")) == before


def test_undo_without_anything_to_take_back_takes_back_nothing(state: StateFolder) -> None:
    assert undo_setup(context(state, agree=False)) == ()


def test_undo_of_packages_needs_consent(state: StateFolder) -> None:
    write_record(state, SetupRecord(packages=("docker.io",)))
    with pytest.raises(SandboxUnavailableError, match="not permitted: remove the packages"):
        undo_setup(context(state, agree=False))
    assert read_record(state).packages == ("docker.io",)


def test_the_record_is_read_as_it_was_written_and_a_damaged_one_is_refused(
    state: StateFolder,
) -> None:
    assert read_record(state) == SetupRecord()
    write_record(state, SetupRecord(packages=("a", "b"), policy=True))
    assert read_record(state) == SetupRecord(packages=("a", "b"), policy=True)
    path = state.root / "setup.json"
    path.write_bytes(path.read_bytes().replace(b'"packages"', b'"packagex"'))
    with pytest.raises(VerificationError, match=r"setup\.json: not as setup wrote it"):
        read_record(state)


def test_no_service_starts_within_the_block_and_no_file_is_left(
    state: StateFolder, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    with deny_service_starts(state, policy_file=policy):
        assert policy.read_bytes() == POLICY
        assert policy.stat().st_mode & 0o777 == 0o755
        assert read_record(state).policy
    assert not policy.exists()
    assert not read_record(state).policy


def test_a_policy_of_the_hosts_own_is_left_alone(state: StateFolder, tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    with deny_service_starts(state, policy_file=policy):
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert policy.exists()
    write_record(state, SetupRecord(policy=True))
    remove_record(state, policy_file=policy)
    assert policy.exists()


def test_a_policy_that_a_crash_left_is_taken_away_by_undo(
    state: StateFolder, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_bytes(POLICY)
    write_record(state, SetupRecord(policy=True))
    remove_record(state, policy_file=policy)
    assert not policy.exists()
    assert not (state.root / "setup.json").exists()
