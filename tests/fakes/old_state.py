"""The state folder that an earlier harness wrote; see tests/fixtures/state_v1/make.py."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

PACKED = Path(__file__).resolve().parent.parent / "fixtures" / "state_v1" / "state.tar.gz"
OLD_ROOT = "/tmp/harness-state-v1/project"
"""Where the state believes its project to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldState:
    """What was unpacked.

    Attributes:
        state: the state folder.
        project: the project, somewhere else than the state believes.
        key: private SSH key of the reviewer `ada`.
    """

    state: Path
    project: Path
    key: Path


def unpack_old_state(folder: Path) -> OldState:
    """Unpack it into a new folder."""
    folder.mkdir(mode=0o700)
    with tarfile.open(PACKED) as archive:
        archive.extractall(folder, filter="data")
    for path in (folder / "state", *(folder / "state").rglob("*")):
        path.chmod(0o700 if path.is_dir() else path.stat().st_mode & 0o700)
    return OldState(state=folder / "state", project=folder / "project", key=folder / "key")
