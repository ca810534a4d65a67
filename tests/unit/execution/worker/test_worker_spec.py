"""What an engine is asked for, and what is refused when it gives something else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.errors import SandboxUnavailableError
from harness.execution.engine.port import BuildSpec, ContainerSpec
from harness.execution.engine.spec import (
    build_request,
    check_read_back,
    container_request,
    observed_limits,
)
from harness.model.digest import digest_of
from harness.model.limits import Limits

SPEC = ContainerSpec(
    name="harness-run-1",
    image_id=digest_of(b"image"),
    unset_env=("LEAK", "PATH"),
    argv=("--step", "1", "true"),
    env={"PATH": "/bin", "HOME": "/home/worker"},
    uid=1000,
    gid=1001,
    volume="volume",
    limits=Limits(),
    tmp_exec=False,
    labels={"harness.run": "run-1"},
)


def host_config() -> dict[str, Any]:
    found = container_request(SPEC)["HostConfig"]
    assert isinstance(found, dict)
    return found


def test_a_worker_gets_nothing_that_is_not_listed() -> None:
    request, host = container_request(SPEC), host_config()
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["MemorySwap"] == host["Memory"] == Limits().memory_bytes
    assert host["CpuQuota"] == 2 * host["CpuPeriod"]
    assert host["LogConfig"]["Type"] == "none"
    assert {item["Type"] for item in host["Mounts"]} == {"volume"}
    assert not {"Binds", "Devices", "CapAdd", "PortBindings"} & set(host)
    assert request["User"] == "1000:1001"
    assert request["Tty"] is False


def test_the_environment_is_the_seal_s_and_the_rest_is_taken_out() -> None:
    env = container_request(SPEC)["Env"]
    assert [item for item in env if "=" in item] == ["HOME=/home/worker", "PATH=/bin"]
    assert [item for item in env if "=" not in item] == ["HOSTNAME", "LEAK", "TERM", "container"]


def test_tmp_and_home_are_sized_and_private() -> None:
    tmpfs = host_config()["Tmpfs"]
    assert tmpfs["/tmp"] == "rw,nosuid,nodev,noexec,size=536870912,mode=1777"
    assert tmpfs["/home/worker"].endswith("mode=0700,uid=1000,gid=1001")


def test_a_read_back_that_agrees_in_another_order_is_accepted() -> None:
    found = host_config()
    found["Ulimits"] = list(reversed(found["Ulimits"]))
    check_read_back(SPEC, found)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MemorySwap", -1, "memorySwap: expected 2147483648, got -1"),
        ("PidsLimit", None, "pidsLimit: expected 512, got None"),
        ("NetworkMode", "bridge", "networkMode: expected none, got bridge"),
        ("Privileged", True, "privileged: expected False, got True"),
        ("CapDrop", None, r"capDrop: expected \[ALL\], got None"),
    ],
)
def test_a_limit_that_is_not_enforced_is_refused_by_name(
    name: str, value: object, message: str
) -> None:
    with pytest.raises(SandboxUnavailableError, match="does not enforce") as caught:
        check_read_back(SPEC, {**host_config(), name: value})
    (issue,) = caught.value.issues
    assert re.fullmatch(message, issue.message)


def test_every_difference_is_reported() -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        check_read_back(SPEC, {})
    assert len(caught.value.issues) == len(observed_limits({}))


def test_a_build_has_no_network_and_no_log() -> None:
    build = BuildSpec(
        name="b", image_id=digest_of(b"i"), argv=("/bin/true", "x"), env={"A": "1"}, labels={}
    )
    request = build_request(build)
    assert request["Entrypoint"] == ["/bin/true", "x"]
    assert request["HostConfig"]["NetworkMode"] == "none"
    assert request["HostConfig"]["LogConfig"]["Type"] == "none"
