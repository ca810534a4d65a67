"""What a worker gets: the isolation part of a policy, and the limits in it.

All amounts are integers: bytes, milliseconds, counts, thousandths of a cpu. A lower level may
only tighten what is above it: host ceiling, then policy, then recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.errors import InputError, Issue

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds for one operation.

    Attributes:
        cpu_millis: thousandths of a cpu.
        memory_bytes: memory; swap is never added.
        pids: processes and threads.
        open_files: file descriptors of one process.
        file_bytes: size of one file.
        tmp_bytes: size of /tmp.
        shm_bytes: size of /dev/shm.
        workspace_bytes: what a run may add to the workspace.
        output_bytes: stdout and stderr together; reaching it ends the run.
        wall_ms: the whole operation, on the wall clock.
        idle_ms: the longest silence on both streams; 0 switches it off.
    """

    cpu_millis: int = 2000
    memory_bytes: int = 2 * GIB
    pids: int = 512
    open_files: int = 4096
    file_bytes: int = 2 * GIB
    tmp_bytes: int = 512 * MIB
    shm_bytes: int = 256 * MIB
    workspace_bytes: int = 4 * GIB
    output_bytes: int = 64 * MIB
    wall_ms: int = 10 * 60 * 1000
    idle_ms: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the JSON members."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


CEILING = Limits(
    cpu_millis=256_000,
    memory_bytes=1024 * GIB,
    pids=65_536,
    open_files=1_048_576,
    file_bytes=1024 * GIB,
    tmp_bytes=256 * GIB,
    shm_bytes=256 * GIB,
    workspace_bytes=1024 * GIB,
    output_bytes=16 * GIB,
    wall_ms=24 * 3600 * 1000,
    idle_ms=24 * 3600 * 1000,
)
"""What no policy may exceed."""

FLOOR: Mapping[str, int] = {
    "cpu_millis": 10,
    "memory_bytes": 16 * MIB,
    "pids": 8,
    "open_files": 64,
    "file_bytes": 4 * KIB,
    "tmp_bytes": 64 * KIB,
    "shm_bytes": 64 * KIB,
    "workspace_bytes": 4 * KIB,
    "output_bytes": 1,
    "wall_ms": 100,
    "idle_ms": 0,
}
"""Below these a worker can't start, or the kernel rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The part of a policy that is sealed.

    Attributes:
        limits: upper bounds for every operation under this policy.
        tmp_exec: whether programs in /tmp may be executed.
        allow_scripts: whether a recipe may run a shell or inline interpreter source.
        admit_secrets: glob patterns of secret-looking files that may enter a snapshot.
        workspace: `auto`, `overlay` or `copy`.
    """

    limits: Limits = Limits()
    tmp_exec: bool = True
    allow_scripts: bool = False
    admit_secrets: tuple[str, ...] = ()
    workspace: str = "auto"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "limits": self.limits.to_json(),
            "tmpExec": self.tmp_exec,
            "allowScripts": self.allow_scripts,
            "admitSecrets": list(self.admit_secrets),
            "workspace": self.workspace,
            "network": "none",
            "seccomp": "engine-default",
        }


def tighten(above: Limits, wanted: Mapping[str, int], where: Mapping[str, str]) -> Limits:
    """Return the limits of a lower level; values not wanted are inherited.

    Args:
        above: the limits of the level above.
        wanted: field names of `Limits` and the lower level's values.
        where: the place of each value, for messages.

    Raises:
        InputError: every value that is wider than above, or below the floor.
    """
    issues: list[Issue] = []
    for name, value in wanted.items():
        ceiling = getattr(above, name)
        place = where.get(name, name)
        if name == "idle_ms":
            wider = ceiling != 0 and (value == 0 or value > ceiling)
        else:
            wider = value > ceiling
        if wider:
            issues.append(
                Issue(
                    message=f"limit {name}: expected at most {ceiling}, got {value}",
                    where=place,
                    fix="a recipe can only tighten its policy, a policy only what is above it",
                )
            )
        if value < FLOOR[name]:
            issues.append(
                Issue(
                    message=f"limit {name}: expected at least {FLOOR[name]}, got {value}",
                    where=place,
                )
            )
    if issues:
        raise InputError("limits are out of bounds", issues=tuple(issues))
    return replace(above, **wanted)
