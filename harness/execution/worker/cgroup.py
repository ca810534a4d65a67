"""What the kernel counted for one container, read from its cgroup while init holds.

Rules: versions 1 and 2 and mixtures of them; a value that this host can't show is `unavailable`,
never a guess. A cgroup whose path does not name the container is another process's (a remote
engine's pid means nothing here) and is not read.
Sources: kernel Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

Amount = int | Literal["unavailable"]

UNAVAILABLE: Literal["unavailable"] = "unavailable"

UNLIMITED = 1 << 62
"""Version 1 says "no limit" with a number of about 2**63, version 2 with the word `max`."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupReading:
    """Counts and limits of one container's cgroup.

    Attributes:
        cpu_ms: processor time used by all its processes.
        memory_peak_bytes: most memory it ever held.
        pids_peak: most processes and threads it ever had.
        oom_kills: processes that the kernel killed for want of memory.
        memory_limit_bytes: the kernel's own limit.
        pids_limit: the kernel's own limit.
    """

    cpu_ms: Amount = UNAVAILABLE
    memory_peak_bytes: Amount = UNAVAILABLE
    pids_peak: Amount = UNAVAILABLE
    oom_kills: Amount = UNAVAILABLE
    memory_limit_bytes: Amount = UNAVAILABLE
    pids_limit: Amount = UNAVAILABLE


def read_cgroup(pid: int, container: str, *, proc: Path = Path("/proc")) -> CgroupReading:
    """Read the cgroup of a container's first process. Never raises.

    Args:
        pid: its pid on this host; 0 when it does not run.
        container: the container's id, which its cgroup path must hold.
        proc: where procfs is mounted.
    """
    folders = _folders(pid, container, proc) if pid else {}
    memory, pids = folders.get("memory"), folders.get("pids")
    cpuacct, unified = folders.get("cpuacct"), folders.get("")
    cpu_ns = _number(cpuacct, "cpuacct.usage")
    cpu_us = _keyed(unified, "cpu.stat", "usage_usec")
    if cpu_ns != UNAVAILABLE:
        cpu_ms: Amount = cpu_ns // 1_000_000
    else:
        cpu_ms = UNAVAILABLE if cpu_us == UNAVAILABLE else cpu_us // 1000
    return CgroupReading(
        cpu_ms=cpu_ms,
        memory_peak_bytes=_first(
            _number(memory, "memory.max_usage_in_bytes"), _number(unified, "memory.peak")
        ),
        pids_peak=_first(_number(pids, "pids.peak"), _number(unified, "pids.peak")),
        oom_kills=_first(
            _keyed(memory, "memory.oom_control", "oom_kill"),
            _keyed(unified, "memory.events", "oom_kill"),
        ),
        memory_limit_bytes=_first(
            _number(memory, "memory.limit_in_bytes"), _number(unified, "memory.max")
        ),
        pids_limit=_first(_number(pids, "pids.max"), _number(unified, "pids.max")),
    )


def _folders(pid: int, container: str, proc: Path) -> Mapping[str, Path]:
    """Return the process's folder in each hierarchy: by controller, `` for version 2."""
    lines = _read(proc / str(pid) / "cgroup").splitlines()
    mounts = _mounts(_read(proc / "self" / "mountinfo"))
    found: dict[str, Path] = {}
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if container in path and controller in mounts:
                root, mount = mounts[controller]
                if PurePosixPath(path).is_relative_to(root):
                    found[controller] = mount / PurePosixPath(path).relative_to(root)
    return found


def _mounts(mountinfo: str) -> Mapping[str, tuple[str, Path]]:
    """Return root and mount point of each hierarchy; format in proc_pid_mountinfo(5)."""
    found: dict[str, tuple[str, Path]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:  # noqa: PLR2004 - the fields used below
            continue
        place = (_unescape(fields[3]), Path(_unescape(fields[4])))
        if kind[0] == "cgroup2":
            found.setdefault("", place)
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                found.setdefault(option, place)
    return found


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _number(folder: Path | None, name: str) -> Amount:
    text = _read(folder / name).strip() if folder else ""
    if not text.isdecimal() or int(text) >= UNLIMITED:
        return UNAVAILABLE
    return int(text)


def _keyed(folder: Path | None, name: str, key: str) -> Amount:
    for line in _read(folder / name).splitlines() if folder else ():
        word, _, value = line.partition(" ")
        if word == key and value.strip().isdecimal():
            return int(value)
    return UNAVAILABLE


def _first(*amounts: Amount) -> Amount:
    return next((amount for amount in amounts if amount != UNAVAILABLE), UNAVAILABLE)
