from __future__ import annotations

from harness.execution.host.packages import (
    install_argv,
    missing_packages,
    parse_added,
    parse_removed,
    purge_argv,
)

# apt 2.6.1, Debian 12
INSTALL = """\
Reading package lists...
The following NEW packages will be installed:
  runc docker.io
Inst libc6 [2.36-9+deb12u9] (2.36-9+deb12u13 Debian:12.15/oldstable [amd64])
Inst runc (1.1.5+ds1-1+deb12u1 Debian:12.15/oldstable [amd64])
Inst docker.io (20.10.24+dfsg1-1+deb12u1+b6 Debian:12.15/oldstable [amd64])
Conf runc (1.1.5+ds1-1+deb12u1 Debian:12.15/oldstable [amd64])
"""
PURGE = """\
The following packages will be REMOVED:
  docker.io* docker-compose*
Purg docker-compose [1.29.2-3]
Purg docker.io [20.10.24+dfsg1-1+deb12u1+b6]
Remv runc [1.1.5+ds1-1+deb12u1]
"""


def test_only_new_packages_count_as_added() -> None:
    assert parse_added(INSTALL) == ("docker.io", "runc")


def test_everything_that_would_go_is_seen() -> None:
    assert parse_removed(PURGE) == ("docker-compose", "docker.io", "runc")


def test_only_what_is_missing_is_asked_for() -> None:
    there = {"gpgv", "iptables"}
    programs = ("dockerd", "iptables", "gpgv", "debootstrap")
    found = missing_packages(programs, lambda name: name if name in there else None)
    assert found == ("debootstrap", "docker.io")


APT = (
    "apt-get",
    "--quiet",
    "--yes",
    "--option=Acquire::Retries=3",
    "--option=DPkg::Lock::Timeout=120",
)


def test_apt_is_patient_adds_no_recommended_packages_and_removes_nothing() -> None:
    argv = install_argv(("docker.io",))
    assert argv == (
        *APT,
        "install",
        "--no-install-recommends",
        "--no-remove",
        "docker.io",
    )
    assert purge_argv(("docker.io",)) == (*APT, "purge", "docker.io")
