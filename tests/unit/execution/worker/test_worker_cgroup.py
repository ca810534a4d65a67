"""Reading cgroups: version 1, version 2, mixtures, and hosts that show nothing."""

from __future__ import annotations

from pathlib import Path

from harness.execution.worker.cgroup import UNAVAILABLE, CgroupReading, read_cgroup

ID = "c0ffee" * 10


def proc(tmp_path: Path, cgroup: str, mountinfo: str) -> Path:
    root = tmp_path / "proc"
    for name, text in (("7/cgroup", cgroup), ("self/mountinfo", mountinfo)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def put(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_version_2_is_read(tmp_path: Path) -> None:
    mount = tmp_path / "my cgroup"
    put(
        mount / f"system.slice/docker-{ID}.scope",
        {
            "cpu.stat": "usage_usec 1500999\nuser_usec 1\n",
            "memory.peak": "4096\n",
            "memory.events": "low 0\noom 1\noom_kill 2\n",
            "memory.max": "8192\n",
            "pids.peak": "5\n",
            "pids.max": "max\n",
        },
    )
    place = str(mount).replace(" ", "\\040")
    root = proc(
        tmp_path,
        f"0::/system.slice/docker-{ID}.scope\n",
        f"30 20 0:26 / {place} rw shared:4 - cgroup2 cgroup2 rw\n",
    )
    assert read_cgroup(7, ID, proc=root) == CgroupReading(
        cpu_ms=1500,
        memory_peak_bytes=4096,
        pids_peak=5,
        oom_kills=2,
        memory_limit_bytes=8192,
        pids_limit=UNAVAILABLE,
    )


def test_version_1_is_read_below_the_root_of_its_mount(tmp_path: Path) -> None:
    put(
        tmp_path / "mem" / ID,
        {
            "memory.max_usage_in_bytes": "100",
            "memory.limit_in_bytes": str((1 << 63) - 4096),
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        },
    )
    put(tmp_path / "cpu" / "docker" / ID, {"cpuacct.usage": "2500000"})
    root = proc(
        tmp_path,
        f"4:memory:/docker/{ID}\n3:cpu,cpuacct:/docker/{ID}\n0::/docker/{ID}\n",
        f"1 0 0:1 /docker {tmp_path}/mem rw - cgroup cgroup rw,memory\n"
        f"2 0 0:2 / {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    )
    assert read_cgroup(7, ID, proc=root) == CgroupReading(
        cpu_ms=2, memory_peak_bytes=100, oom_kills=3
    )


def test_another_process_s_cgroup_is_not_read(tmp_path: Path) -> None:
    put(tmp_path / "cg" / "other", {"memory.peak": "1"})
    root = proc(tmp_path, "0::/other\n", f"1 0 0:1 / {tmp_path}/cg rw - cgroup2 cgroup2 rw\n")
    assert read_cgroup(7, ID, proc=root) == CgroupReading()


def test_a_host_that_shows_nothing_is_said_to_show_nothing(tmp_path: Path) -> None:
    assert read_cgroup(0, ID) == CgroupReading()
    assert read_cgroup(7, ID, proc=tmp_path) == CgroupReading()
    root = proc(tmp_path, f"0::/{ID}\nnonsense\n", "broken\n1 0 0:1 / /none rw - cgroup2 x rw\n")
    assert read_cgroup(7, ID, proc=root) == CgroupReading()
