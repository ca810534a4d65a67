"""What a worker gets: the isolation part of a policy, and the limits in it.

All amounts are integers: bytes, milliseconds, counts, thousandths of a cpu. A lower level may
only tighten what is above it: host ceiling, then policy, then recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from harness.errors import InputError, Issue
from harness.model.units import Unit, spell_amount

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
        artifact_bytes: size of one output that is kept.
        output_bytes: stdout and stderr together; going over it ends the run.
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
    artifact_bytes: int = 64 * MIB
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
    artifact_bytes=16 * GIB,
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
    "artifact_bytes": 1,
    "output_bytes": 1,
    "wall_ms": 100,
    "idle_ms": 0,
}
"""Below these a worker can't start, or the kernel rounds."""


SPELLING: Mapping[str, tuple[str, Unit]] = {
    "cpu_millis": ("cpus", "cpus"),
    "memory_bytes": ("memory", "size"),
    "pids": ("pids", "count"),
    "open_files": ("open_files", "count"),
    "file_bytes": ("file_size", "size"),
    "tmp_bytes": ("tmp", "size"),
    "shm_bytes": ("shm", "size"),
    "workspace_bytes": ("workspace", "size"),
    "artifact_bytes": ("artifact", "size"),
    "output_bytes": ("output", "size"),
    "wall_ms": ("wall", "time"),
    "idle_ms": ("idle", "time"),
}
"""How each limit is called in recipe and policy files, and in which unit it is written."""


def spell_limit(name: str, value: int) -> str:
    """Return a limit's value as a file would have it: `512MiB`, `10m`, `1.5`.

    Args:
        name: field name of `Limits`.
        value: its value.
    """
    return spell_amount(SPELLING[name][1], value)


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

    @classmethod
    def from_json(cls, sealed: Mapping[str, Any]) -> Self:
        """Return the isolation that a seal holds; the opposite of `to_json`."""
        return cls(
            limits=Limits(**sealed["limits"]),
            tmp_exec=sealed["tmpExec"],
            allow_scripts=sealed["allowScripts"],
            admit_secrets=tuple(sealed["admitSecrets"]),
            workspace=sealed["workspace"],
        )

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
        word, place = SPELLING[name][0], where.get(name, name)
        got = spell_limit(name, value)
        if _is_wider(name, value, getattr(above, name)):
            most = spell_limit(name, getattr(above, name))
            issues.append(
                Issue(
                    message=f"limit {word}: expected at most {most}, got {got}",
                    where=place,
                    fix="a recipe can only tighten its policy, a policy only what is above it",
                )
            )
        if value < FLOOR[name]:
            least = spell_limit(name, FLOOR[name])
            issues.append(
                Issue(message=f"limit {word}: expected at least {least}, got {got}", where=place)
            )
    if issues:
        raise InputError("limits are out of bounds", issues=tuple(issues))
    return replace(above, **wanted)


def _is_wider(name: str, value: int, above: int) -> bool:
    if name == "idle_ms":  # 0 switches it off: the widest of all
        return above != 0 and (value == 0 or value > above)
    return value > above


ANY = "*"
"""The pattern that admits every secret-looking file."""

WIDEST = Isolation(
    limits=replace(CEILING, idle_ms=0), tmp_exec=True, allow_scripts=True, admit_secrets=(ANY,)
)
"""What the harness itself allows at most."""


def stricter(above: Isolation, below: Isolation) -> Isolation:
    """Return what both levels permit: of each member the stricter value.

    Args:
        above: the host's policy, say.
        below: the project's.
    """
    limits = {
        name: getattr(above.limits, name)
        if _is_wider(name, getattr(below.limits, name), getattr(above.limits, name))
        else getattr(below.limits, name)
        for name in SPELLING
    }
    return Isolation(
        limits=Limits(**limits),
        tmp_exec=above.tmp_exec and below.tmp_exec,
        allow_scripts=above.allow_scripts and below.allow_scripts,
        admit_secrets=tuple(
            pattern
            for pattern in below.admit_secrets
            if ANY in above.admit_secrets or pattern in above.admit_secrets
        ),
        workspace=below.workspace if above.workspace == "auto" else above.workspace,
    )
