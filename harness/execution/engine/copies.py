"""The part of the engine port that moves files and figures where the engine can't see our folders.

Rules: as in `port`. An archive streams both ways in bounded memory, and no stream hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from harness.model.digest import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierSpec:
    """A container that is never started: through it archives reach the volume at /workspace.

    A worker can't serve: its root is read-only, and an archive that is to give /workspace itself
    an owner has to be unpacked in the folder above.

    Attributes:
        name: unique.
        image_id: any image of the engine's.
        volume: name of the volume.
        labels: say whose it is.
    """

    name: str
    image_id: Digest
    volume: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUsage:
    """What an engine counted for one container that runs.

    Attributes:
        cpu_ms: processor time used by all its processes; None when the engine does not say.
        memory_peak_bytes: most memory it ever held; None when the engine does not say.
    """

    cpu_ms: int | None
    memory_peak_bytes: int | None


class CopyEngine(Protocol):
    """What the copy strategy needs of an engine; errors as in `port.Engine`."""

    def create_carrier(self, carrier: CarrierSpec) -> str:
        """Make a carrier and return its id.

        Raises:
            ImageMissingError: the image is not there.
        """

    def copy_in(self, container: str, path: str, tar: BinaryIO | Iterable[bytes]) -> None:
        """Unpack a tar archive below a folder of a container that is not running.

        Args:
            container: id.
            path: absolute path inside.
            tar: the archive, or its pieces; an error of theirs ends the call and comes through.
        """

    def stream_out(self, container: str, path: str) -> Iterator[bytes]:
        """Yield a tar archive of one path, in pieces; the container does not run.

        The first entry is the path's last name, the others begin with it and a slash.

        Raises:
            SandboxUnavailableError: no such path.
        """

    def usage(self, container: str) -> EngineUsage:
        """Return what the engine counted for a container that runs."""

    def volume_bytes(self, name: str) -> int | None:
        """Return the size of the files in a volume; None when the engine does not say."""
