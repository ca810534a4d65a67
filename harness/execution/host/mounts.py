"""What is mounted where, by /proc/self/mountinfo (proc(5))."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import SandboxUnavailableError

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")


def parse_mounts(text: str) -> tuple[tuple[Path, str], ...]:
    """Return mount point and file-system type of each line, in the order they were mounted."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), left.split()[4])
        found.append((Path(point), right.split()[0]))
    return tuple(found)


def file_system_of(path: Path) -> str:
    """Return the type of the file system a path lies on.

    Raises:
        SandboxUnavailableError: /proc is not there.
    """
    real = path.resolve()
    holding = [
        (len(point.parts), number, kind)
        for number, (point, kind) in enumerate(_read_mounts())
        if real.is_relative_to(point)
    ]
    return max(holding)[2] if holding else ""


def mounts_below(folder: Path) -> tuple[Path, ...]:
    """Return the mount points at and below a folder, the last one mounted first.

    Raises:
        SandboxUnavailableError: /proc is not there.
    """
    real = folder.resolve()
    return tuple(point for point, _ in reversed(_read_mounts()) if point.is_relative_to(real))


def _read_mounts() -> tuple[tuple[Path, str], ...]:
    try:
        return parse_mounts(_MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        raise SandboxUnavailableError(f"host: {_MOUNTS}: {error.strerror}") from error
