from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SandboxUnavailableError
from harness.execution.image.base import BaseSpec, without_dates
from harness.execution.image.dependencies import download_argv
from harness.execution.image.minimal import MinimalSpec, debootstrap_argv
from harness.execution.image.workshop import FREE_BYTES, check_host, in_root
from harness.model.digest import digest_of

SPEC = BaseSpec(
    suite="bookworm", packages=("python3", "git"), architecture="amd64", init=digest_of(b"init")
)


def test_debootstrap_checks_signatures_in_namespaces_that_die_with_us() -> None:
    argv = debootstrap_argv(minimal(), Path("/t"))
    assert argv[:3] == ("setpriv", "--pdeathsig", "KILL")
    assert {"unshare", "--mount", "--pid", "--kill-child", "--force-check-gpg"} <= set(argv)
    assert argv[-2:] == ("bookworm", "/t")
    assert debootstrap_argv(minimal("file:///mirror"), Path("/t"))[-1] == "file:///mirror"


def minimal(mirror: str = "") -> MinimalSpec:
    return MinimalSpec(suite="bookworm", architecture="amd64", mirror=mirror)


def test_a_program_in_a_tree_has_no_network_unless_it_is_to_fetch() -> None:
    assert "--net" in in_root(Path("/t"), ("gcc",))
    assert "--net" not in in_root(Path("/t"), ("apt-get",), network=True)


def test_a_system_of_another_mirror_is_another_one() -> None:
    assert minimal().key != minimal("file:///mirror").key


def test_everything_that_decides_a_base_is_in_its_key() -> None:
    others = (
        BaseSpec(suite="trixie", packages=SPEC.packages, architecture="amd64", init=SPEC.init),
        BaseSpec(suite="bookworm", packages=("git",), architecture="amd64", init=SPEC.init),
        BaseSpec(suite="bookworm", packages=SPEC.packages, architecture="arm64", init=SPEC.init),
        BaseSpec(
            suite="bookworm", packages=SPEC.packages, architecture="amd64", init=digest_of(b"x")
        ),
    )
    assert len({SPEC.key, *(other.key for other in others)}) == 5


def test_a_plain_user_is_told_what_to_ask_for() -> None:
    with pytest.raises(SandboxUnavailableError, match="expected user 0") as caught:
        check_host(uid=1000, find=lambda name: name, free=FREE_BYTES)
    assert "ask an administrator" in caught.value.hint


def test_missing_programs_are_named_by_their_packages() -> None:
    there = {"setpriv", "unshare", "tar"}
    with pytest.raises(SandboxUnavailableError, match="missing on this host: debootstrap, gpgv"):
        check_host(uid=0, find=lambda name: name if name in there else None, free=FREE_BYTES)


@pytest.mark.fault("L090")
def test_a_full_disk_is_found_before_the_build() -> None:
    with pytest.raises(SandboxUnavailableError, match="free bytes in the state folder, got 10"):
        check_host(uid=0, find=lambda name: name, free=10)
    check_host(uid=0, find=lambda name: name, free=FREE_BYTES)


def test_the_day_of_a_build_is_taken_out_of_shadow() -> None:
    text = "root:*:20787:0:99999:7:::\ndaemon:*:20787:0:99999:7:::\n"
    assert without_dates(text) == "root:*::0:99999:7:::\ndaemon:*::0:99999:7:::\n"


def test_pip_may_only_take_hashed_wheels_for_the_image_and_not_for_the_host(
    tmp_path: Path,
) -> None:
    argv = download_argv(
        (tmp_path / "a", tmp_path / "b"), tmp_path, python_version="3.11", architecture="arm64"
    )
    assert {"--require-hashes", "--only-binary=:all:", "--python-version=3.11"} <= set(argv)
    assert "--platform=manylinux2014_aarch64" in argv
    assert f"--requirement={tmp_path / 'b'}" in argv
    assert not any("x86_64" in argument for argument in argv)
