"""From a scanned project to a stack of layers that shows it: reuse, stack one more, or start anew.

Rules:
    * A stack that shows the snapshot already is used as it is.
    * A small difference becomes one more layer on the last stack. When that is deep, all that
      differs from its full layer becomes one layer on that.
    * A large difference, or a host that refuses whiteouts to a plain user, gets a full layer.
    * Written aside, synced, renamed: a killed build leaves a folder with the project's id in its
      name, which the next build of the same project removes under the project's lock.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import VerificationError
from harness.execution.snapshot.delta import Step, compare_trees
from harness.execution.snapshot.layer_list import layer_list_bytes
from harness.execution.snapshot.layer_writer import LayerWriter
from harness.execution.snapshot.layers import (
    Layer,
    find_stack,
    has_room,
    index_stack,
    layer_json,
)
from harness.model.digest import Digest
from harness.model.tree import LoadFolder
from harness.store.durable import rename, state_error, sync_folder, write_durably
from harness.store.handles import open_folder_path

SYNC_EACH = 64
"""Up to so many files are synced one by one; beyond that one sync(2) for all is quicker (the
standard library has no syncfs)."""

_REFUSED = (errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBuild:
    """What a build needs to know.

    Attributes:
        layers: the folder of all layers.
        project: id of the project, whose lock is held.
        source_fd: the live project.
        owner: user and group id of everything in a layer.
        load: reads folder objects and link targets.
        contents: what the scan read of files, by digest; the others are read again.
        files: number of files in the snapshot.
        size: their bytes.
    """

    layers: Path
    project: str
    source_fd: int
    owner: tuple[int, int]
    load: LoadFolder
    contents: Mapping[str, bytes]
    files: int
    size: int

    def run(self, digest: Digest, below: tuple[Layer, ...]) -> Layer:
        """Return the layer on top of a stack that shows a snapshot.

        Args:
            digest: the snapshot; its objects are stored.
            below: the last stack of the project; none when there is none.

        Raises:
            MovedError: the project is not what the scan saw.
            StateError: the disk is full, or the layer can't be written.
            VerificationError: an object of the snapshot is missing or damaged.
        """
        found = find_stack(self.layers, digest)
        if found and found[0].owner == self.owner:
            return found[0]
        base = self._base(below)
        steps = self._small_difference(digest, base) if base else None
        if base and steps is not None:
            try:
                return self._write(digest, base.name, steps)
            except OSError as error:
                if error.errno not in _REFUSED:
                    raise state_error("write a layer", error) from error
        try:
            return self._write(digest, "", list(compare_trees(self.load, None, digest)))
        except OSError as error:
            raise state_error("write a layer", error) from error

    def _base(self, below: tuple[Layer, ...]) -> Layer | None:
        """Return the layer to lie on: the last one while there is room, then the full one."""
        if not below or below[0].owner != self.owner:
            return None
        return below[0] if has_room(below) else below[-1]

    def _small_difference(self, digest: Digest, base: Layer) -> list[Step] | None:
        """Return what one more layer has to show; None when a full layer is better."""
        try:
            steps = list(compare_trees(self.load, base.snapshot, digest))
        except VerificationError:
            return None  # an object of the older snapshot is lost; this one does not need it
        size = sum(step.after.size for step in steps if step.after and step.after.type == "file")
        small = len(steps) * 2 <= self.files and size * 2 <= self.size
        return steps if small else None

    def _write(self, digest: Digest, below: str, steps: list[Step]) -> Layer:
        name = secrets.token_hex(4)
        aside = self.layers / f".{self.project}.{name}"
        layer = Layer(folder=self.layers / name, snapshot=digest, below=below, owner=self.owner)
        sync_each = len(steps) <= SYNC_EACH
        try:
            (aside / "t").mkdir(mode=0o700, parents=True)
            with open_folder_path(aside / "t") as target_fd:
                writer = LayerWriter(
                    self.source_fd,
                    target_fd,
                    owner=self.owner,
                    load=self.load,
                    contents=self.contents,
                )
                listed = writer.write(steps, sync=sync_each)
                os.fsync(target_fd)
            if not sync_each:
                os.sync()
            write_durably(aside / "files.json", layer_list_bytes(listed))
            write_durably(aside / "layer.json", layer_json(layer))
            rename(aside, layer.folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_folder(self.layers)
        index_stack(self.layers, layer)
        return layer


def sweep_unfinished(layers: Path, project: str) -> None:
    """Remove what killed builds of a project left behind; its lock is held.

    Raises:
        StateError: a folder can't be removed.
    """
    try:
        for entry in os.scandir(layers):
            if entry.name.startswith(f".{project}."):
                shutil.rmtree(entry.path)
    except OSError as error:
        raise state_error("sweep layers", error) from error
