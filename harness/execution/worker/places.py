"""The two kinds of workspace, seen alike by a run: where the volume is, what came of it.

An overlay's volume lies over folders of ours; a copy's is a plain folder of the engine's, filled
and read back by archive, through a container that is never started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.errors import HarnessError
from harness.execution.engine.copies import CarrierSpec
from harness.execution.engine.port import Engine
from harness.execution.quarantine.compare import NOTHING_GONE, Gone
from harness.execution.snapshot.contents import Content
from harness.execution.worker.archive_writer import write_archive
from harness.execution.worker.made import Made
from harness.execution.worker.operation import Operation, StopRequest
from harness.execution.worker.read_back import read_back
from harness.execution.worker.watch import DiskWatch, FolderGauge, VolumeGauge
from harness.execution.worker.workspace import SOURCE_DATE_EPOCH, Workspace, overlay_options
from harness.model.seal import WORKSPACE
from harness.model.tree import Node

_ROOT = WORKSPACE.removeprefix("/").encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a run left.

    Attributes:
        gone: what is gone without a mark in the upper layer.
        over_limit: it holds more than it may.
        trouble: why it could not be brought here; None when it could.
    """

    gone: Gone = field(default_factory=lambda: NOTHING_GONE)
    over_limit: bool = False
    trouble: HarnessError | None = None


class Place(Protocol):
    """A workspace on an engine."""

    def volume_options(self) -> Mapping[str, str]:
        """Return the options of the volume's driver.

        Raises:
            StateError: a path of ours can't stand in them.
        """

    def fill(self, stop: StopRequest) -> bool:
        """Put the snapshot into the volume, whose worker was not started yet.

        Returns:
            False when it was asked to stop before all was there.

        Raises:
            HarnessError: the engine refused, or the snapshot is damaged.
        """

    def watch(self) -> DiskWatch:
        """Return a watch over what a run adds, after `fill`."""

    def collect(self, watch: DiskWatch) -> Collected:
        """Bring here what the run left, once its container has ended. Never raises."""


class OverlayPlace:
    """An overlay of the snapshot's layers and an upper layer, all on a disk of ours.

    Args:
        operation: what will run.
        workspace: the empty folders of the overlay.
    """

    def __init__(self, operation: Operation, workspace: Workspace) -> None:
        self._operation, self._workspace = operation, workspace

    def volume_options(self) -> Mapping[str, str]:
        """Return the mount of the overlay."""
        return overlay_options(self._operation.snapshot.layers, self._workspace)

    def fill(self, stop: StopRequest) -> bool:
        """Do nothing: the layers are there."""
        del stop
        return True

    def watch(self) -> DiskWatch:
        """Return a watch over the upper layer."""
        gauge = FolderGauge(self._workspace.upper)
        return DiskWatch(gauge, self._operation.limits.workspace_bytes)

    def collect(self, watch: DiskWatch) -> Collected:
        """Count once more; the upper layer is what the run left."""
        return Collected(over_limit=watch.check() == "disk")


class _StoppedError(Exception):
    """Somebody asked to stop while the workspace was filled. Never leaves this module."""


class CopyPlace:
    """A copy of the snapshot on the engine's own disk.

    Args:
        engine: where it is.
        operation: what will run.
        workspace: gets what comes back.
        made: notes what is made on the engine.
    """

    def __init__(
        self, engine: Engine, operation: Operation, workspace: Workspace, made: Made
    ) -> None:
        self._engine, self._operation = engine, operation
        self._workspace, self._made = workspace, made
        self._owner = (operation.uid, operation.gid)
        self._carrier = ""
        self._sent: dict[bytes, Node] = {}

    def volume_options(self) -> Mapping[str, str]:
        """Return nothing: a plain folder of the engine's."""
        return {}

    def fill(self, stop: StopRequest) -> bool:
        """Send the snapshot."""
        spec = CarrierSpec(
            name=f"{self._made.name}-carrier",
            image_id=self._operation.image.image_id,
            volume=self._made.name,
            labels=self._made.labels,
        )
        self._carrier = self._made.container(lambda: self._engine.create_carrier(spec))
        archive = write_archive(
            self._contents(stop), root=_ROOT, owner=self._owner, mtime=SOURCE_DATE_EPOCH
        )
        try:
            self._engine.copy_in(self._carrier, "/", archive)
        except _StoppedError:
            return False
        return True

    def watch(self) -> DiskWatch:
        """Return a watch over the volume, by the engine's own count."""
        size = sum(node.size for node in self._sent.values() if node.type != "folder")
        gauge = VolumeGauge(self._engine, self._made.name, size)
        return DiskWatch(gauge, self._operation.limits.workspace_bytes)

    def collect(self, watch: DiskWatch) -> Collected:
        """Read the workspace back."""
        del watch
        try:
            back = read_back(
                self._engine.stream_out(self._carrier, WORKSPACE),
                root=_ROOT,
                snapshot=self._operation.snapshot,
                before=self._sent,
                upper=self._workspace.upper,
                owner=self._owner,
                limit=self._operation.limits.workspace_bytes,
            )
        except HarnessError as error:
            return Collected(trouble=error)
        return Collected(gone=back.gone, over_limit=not back.complete)

    def _contents(self, stop: StopRequest) -> Iterator[Content]:
        for content in self._operation.snapshot.contents():
            if stop.reason:
                raise _StoppedError
            self._sent[content.path] = content.node
            yield content
