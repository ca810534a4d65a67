"""The machine that figures were taken on, in words that name no host and no path."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from harness.execution.engine.port import Engine
from harness.execution.worker.strategy import file_system

GIB = 1 << 30


def describe_machine(engine: Engine, folder: Path) -> dict[str, str]:
    """Return what matters for speed, by its name.

    Args:
        engine: the one that runs were made on.
        folder: where the projects and the state lie.
    """
    info = engine.info()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / GIB:.0f} GiB",
        "kernel": platform.release(),
        "file system": file_system(folder) or "unknown",
        "engine": f"Docker {info.version}, {info.storage_driver}, cgroup v{info.cgroup_version}",
        "Python": platform.python_version(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
