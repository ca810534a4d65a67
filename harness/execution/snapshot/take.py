"""Take a snapshot: scan and hash the project, store its objects, make the layers that show it.

Rules:
    * A refusal comes before anything is stored; the project itself is never written to.
    * One at a time for each project; snapshots of different projects don't wait for each other.
    * A project that changes between scan and copy is scanned again, a few times, and then refused.
    * A snapshot is its digest. Layers and the stat cache can be deleted at any time; the next
      snapshot makes them anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError, StateError
from harness.execution.snapshot.layer_build import LayerBuild, sweep_unfinished
from harness.execution.snapshot.layers import Layer, check_layers_path, load_stack
from harness.execution.snapshot.read_file import ATTEMPTS, MovedError, keeps_changing
from harness.execution.snapshot.scan import Scan
from harness.execution.snapshot.selection import Selection
from harness.execution.snapshot.stat_cache import RACY_NS, load_rows, save_rows
from harness.execution.snapshot.totals import LeftOut
from harness.model.digest import Digest
from harness.store.blob_batch import put_blobs
from harness.store.durable import state_error, write_durably
from harness.store.handles import open_folder_path
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

MAX_BYTES = 16 << 30
"""Most bytes of files in a snapshot, by their apparent sizes."""

LOCK_SECONDS = 600.0

STAT_CACHE = "stat-cache.sqlite"
"""In a project's folder of the state: what the last walks saw."""

_LATEST = "latest"
_HEADS_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A project, frozen.

    Attributes:
        digest: of the root's folder object.
        files: how many files it holds.
        bytes: their sizes, added up.
        left_out: secret-looking files that stayed out, by path.
    """

    digest: Digest
    files: int
    bytes: int
    left_out: tuple[LeftOut, ...]


def take_snapshot(
    root: Path,
    *,
    state: StateFolder,
    project: str,
    owner: tuple[int, int],
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    admit_secrets: Iterable[str] = (),
    max_bytes: int = MAX_BYTES,
    clock: Callable[[], int] = time.time_ns,
) -> Snapshot:
    """Freeze a project.

    Args:
        root: the project's folder.
        state: where objects and layers go; must lie outside the project.
        project: its id.
        owner: user and group id of a worker.
        include: gitignore-style patterns of what enters; none means all.
        exclude: patterns of what stays out.
        admit_secrets: patterns of secret-looking files that may enter.
        max_bytes: most bytes of files that may enter.
        clock: nanoseconds since the epoch, on the clock of the file system.

    Raises:
        InputError: everything that may not enter, by name; too many bytes; the project can't be
            read, or keeps changing.
        StateError: the state folder lies inside the project, has a path that can't be mounted,
            is full, or another snapshot of the project does not end.
        VerificationError: an object in the store is damaged.
    """
    check_layers_path(state.layers)
    if state.root.resolve().is_relative_to(root.resolve()):
        raise StateError(
            "state folder: lies inside the project",
            hint="set HARNESS_STATE to a folder outside of it",
        )
    selection = Selection(include=include, exclude=exclude, admit_secrets=admit_secrets)
    take = _Take(state, project, selection, owner, max_bytes, clock)
    folder = state.project(project)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise state_error("make the project's folder", error) from error
    with hold_lock(
        folder / "snapshot.lock",
        wait_seconds=LOCK_SECONDS,
        busy="another snapshot of this project does not end",
    ):
        sweep_unfinished(state.layers, project)
        for _ in range(ATTEMPTS):
            try:
                return take.run(root)
            except MovedError:
                continue
    raise keeps_changing(b"")


def scope_of(selection: Selection, root_fd: int) -> str:
    """Name a folder under some patterns, in the stat cache: another clone has other inodes."""
    found = os.fstat(root_fd)
    text = f"{selection.digest} {found.st_dev} {found.st_ino}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Take:
    """One snapshot of one project, under its lock."""

    state: StateFolder
    project: str
    selection: Selection
    owner: tuple[int, int]
    max_bytes: int
    clock: Callable[[], int]

    def run(self, root: Path) -> Snapshot:
        started = self.clock()
        cache = self.state.project(self.project) / STAT_CACHE
        try:
            with open_folder_path(root) as root_fd:
                scope = scope_of(self.selection, root_fd)
                known = load_rows(cache, scope)
                scan = Scan(
                    self.selection, known=known, blobs=self.state.blobs, max_bytes=self.max_bytes
                )
                digest = scan.run(root_fd)
                put_blobs(self.state.blobs, scan.made.values())
                self._make_layers(root_fd, scope, digest, scan)
        except OSError as error:
            raise InputError(f"project: can't be opened: {error.strerror}") from error
        rows = scan.totals.rows
        changed = {path: row for path, row in rows.items() if known.get(path) is not row}
        gone = known.keys() - rows.keys()
        if changed or gone:
            save_rows(cache, scope, changed, gone, racy_from=started - RACY_NS)
        return Snapshot(
            digest=digest,
            files=scan.totals.files,
            bytes=scan.totals.size,
            left_out=tuple(sorted(scan.totals.left_out, key=lambda item: item.path)),
        )

    def _make_layers(self, root_fd: int, scope: str, digest: Digest, scan: Scan) -> None:
        """Have a stack that shows the snapshot, and remember it as the one to build on."""
        heads = self._heads()
        below: tuple[Layer, ...] = ()
        for key in (scope, _LATEST):
            below = below or load_stack(self.state.layers, heads.get(key, ""))
        build = LayerBuild(
            layers=self.state.layers,
            project=self.project,
            source_fd=root_fd,
            owner=self.owner,
            load=self.state.blobs.get,
            contents=scan.contents,
            files=scan.totals.files,
            size=scan.totals.size,
        )
        top = build.run(digest, below)
        recent = {scope: top.name, _LATEST: top.name}
        others = [item for item in heads.items() if item[0] not in recent][: _HEADS_KEPT - 2]
        kept = {**recent, **dict(others)}
        if kept != heads:
            write_durably(self._heads_path, json.dumps(kept).encode())

    @property
    def _heads_path(self) -> Path:
        return self.state.project(self.project) / "layer-heads.json"

    def _heads(self) -> dict[str, str]:
        """Return the last layer by scope; a damaged file is as good as none."""
        try:
            value = json.loads(self._heads_path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(value, dict):
            return {}
        return {str(key): str(name) for key, name in value.items()}
