"""The host's state folder: where it is, what is in it, who may look.

The root is $HARNESS_STATE, else $XDG_STATE_HOME/sealed-harness, with mode 0700. In it:

- `host/`: host key and its public form
- `ledger/`: entries.jsonl, checkpoint, frontier
- `objects/`: blobs by digest
- `images.lock`: image name -> content id
- `layers/N/`: snapshot layers (read-only below workers), with their lists
- `projects/ID/`: root, stat cache, apply journal
- `runs/RUN/`: workspace of a run while it lasts
- `engine/`: an engine of our own, where `harness setup` started one
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StateError
from harness.store.blobs import BlobStore
from harness.store.durable import state_error

MODE = 0o700

_ANOTHERS = (
    "each user has a state folder of their own: set HARNESS_STATE, or HOME where it is another "
    "user's; with sudo the one that counts is root's, so give every command with sudo or none"
)


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The state folder and the places in it.

    Attributes:
        root: its absolute path.
    """

    root: Path

    @property
    def host(self) -> Path:
        """Return the folder of the host key."""
        return self.root / "host"

    @property
    def ledger(self) -> Path:
        """Return the folder of the ledger."""
        return self.root / "ledger"

    @property
    def images_lock(self) -> Path:
        """Return the file that maps image names to content ids."""
        return self.root / "images.lock"

    @property
    def images(self) -> Path:
        """Return the folder of cached image bases and of image builds at work."""
        return self.root / "images"

    @property
    def layers(self) -> Path:
        """Return the folder of the snapshot layers."""
        return self.root / "layers"

    @property
    def engine(self) -> Path:
        """Return the folder of an engine that `harness setup` started."""
        return self.root / "engine"

    def project(self, project: str) -> Path:
        """Return the folder of one project."""
        return self.root / "projects" / project

    def run(self, run: str) -> Path:
        """Return the folder of one run."""
        return self.root / "runs" / run

    @property
    def blobs(self) -> BlobStore:
        """Return the blob store."""
        return BlobStore(self.root / "objects")


def find_state_root(environment: Mapping[str, str]) -> Path:
    """Return the state folder's path by `$HARNESS_STATE`, `$XDG_STATE_HOME`, then `$HOME`.

    Raises:
        StateError: none of them is set to an absolute path.
    """
    named = environment.get("HARNESS_STATE")
    if named:
        if not os.path.isabs(named):  # noqa: PTH117 - as below
            # It would be another folder for each working directory, and lie in the project.
            raise StateError(
                f"state folder: expected HARNESS_STATE to be an absolute path, got {named!r:.100}",
                hint="set HARNESS_STATE to the whole path of a folder that only you can read",
            )
        return Path(named)
    base = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):  # noqa: PTH117 - XDG: a relative path is ignored
        return Path(base) / "sealed-harness"
    home = environment.get("HOME", "")
    if os.path.isabs(home):  # noqa: PTH117
        return Path(home) / ".local" / "state" / "sealed-harness"
    raise StateError(
        "state folder: none of HARNESS_STATE, XDG_STATE_HOME and HOME is set",
        hint="set HARNESS_STATE to a folder that only you can read",
    )


def open_state(root: Path) -> StateFolder:
    """Make the state folder when missing, and refuse one that others can enter.

    Raises:
        StateError: it belongs to somebody else, has a wider mode than 0700, or can't be made.
    """
    try:
        _make_private(root)
        found = root.stat()
        if found.st_uid != os.geteuid():
            raise StateError(
                f"state folder {root}: expected owner {os.geteuid()}, got {found.st_uid}",
                hint=_ANOTHERS,
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise StateError(
                f"state folder: expected mode 0700, got {stat.S_IMODE(found.st_mode):04o}",
                hint=f"chmod 700 {root}",
            )
        for name in ("host", "ledger", "objects", "images", "layers", "projects", "runs"):
            (root / name).mkdir(mode=MODE, exist_ok=True)
    except PermissionError as error:
        raise StateError(
            f"state folder {root}: this user may not make or enter it", hint=_ANOTHERS
        ) from error
    except OSError as error:
        raise state_error("open", error) from error
    return StateFolder(root)


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each with mode 0700.

    So says the XDG Base Directory Specification; `Path.mkdir` leaves those above to the umask.

    Raises:
        OSError: as `os.mkdir`.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make_private(folder.parent)
    folder.mkdir(mode=MODE, exist_ok=True)
