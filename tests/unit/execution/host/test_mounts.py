from __future__ import annotations

from pathlib import Path

from harness.execution.host.command import host_environment
from harness.execution.host.daemon import daemon_argv
from harness.execution.host.mounts import file_system_of, parse_mounts
from harness.store.state import StateFolder

# proc(5), with and without optional fields, and an escaped blank
TEXT = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 22 0:27 / /mnt/a\\040b rw shared:7 master:2 - overlay overlay rw,lowerdir=/x
"""


def test_lines_are_read_by_their_separator() -> None:
    assert parse_mounts(TEXT) == ((Path("/"), "ext4"), (Path("/mnt/a b"), "overlay"))


def test_the_file_system_of_proc_is_proc() -> None:
    assert file_system_of(Path("/proc/self")) == "proc"


def test_our_engine_has_no_bridge_no_firewall_and_its_own_folders(tmp_path: Path) -> None:
    argv = daemon_argv(StateFolder(tmp_path))
    assert {"--bridge=none", "--iptables=false", "--ip-forward=false"} <= set(argv)
    assert f"--data-root={tmp_path}/engine/data" in argv


def test_a_host_program_sees_the_proxies_and_nothing_else_of_the_caller() -> None:
    seen = host_environment(
        {"https_proxy": "p", "NO_PROXY": "n", "HOME": "/h", "SECRET_TOKEN": "t", "LD_PRELOAD": "x"}
    )
    assert (seen["https_proxy"], seen["NO_PROXY"], seen["HOME"]) == ("p", "n", "/h")
    assert "SECRET_TOKEN" not in seen
    assert "LD_PRELOAD" not in seen
