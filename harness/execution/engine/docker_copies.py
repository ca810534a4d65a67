"""The Docker adapter's part for `copies.CopyEngine`: archives in and out, and what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import docker.errors
import requests

from harness.errors import SandboxUnavailableError
from harness.execution.engine.copies import CarrierSpec, EngineUsage
from harness.execution.engine.docker_calls import DockerCalls, translated
from harness.execution.engine.spec import carrier_request

_PIECE = 1 << 16


class DockerCopies(DockerCalls):
    """Copies for a Docker Engine."""

    def create_carrier(self, carrier: CarrierSpec) -> str:
        """Make a carrier and return its id.

        Raises:
            ImageMissingError: the image is not there.
        """
        return self._create("carrier.create", carrier_request(carrier), carrier.name)

    def copy_in(self, container: str, path: str, tar: BinaryIO | Iterable[bytes]) -> None:
        """Unpack a tar archive below a folder of a container that is not running."""
        self._call(
            "container.copy-in",
            lambda client: client.put_archive(container, path, tar),
            slow=True,
        )

    def copy_out(self, container: str, path: str, *, limit: int) -> bytes:
        """Return a tar archive of one path.

        Raises:
            SandboxUnavailableError: no such path, or the archive is larger than the limit.
        """
        archive = bytearray()
        for piece in self.stream_out(container, path):
            archive += piece
            if len(archive) > limit:
                raise SandboxUnavailableError(f"engine: archive is larger than {limit} bytes")
        return bytes(archive)

    def stream_out(self, container: str, path: str) -> Iterator[bytes]:
        """Yield a tar archive of one path, in pieces.

        Raises:
            SandboxUnavailableError: no such path.
            EngineUnreachableError: the archive was cut, or nothing came in time.
        """
        response = self._call(
            "container.copy-out",
            lambda client: _get(client, f"containers/{container}/archive", path=path),
        )
        try:
            with translated("container.copy-out"):
                yield from response.iter_content(_PIECE)
        finally:
            response.close()

    def usage(self, container: str) -> EngineUsage:
        """Return what the engine counted for a container that runs.

        The peak of memory is known on cgroup version 1 only (Docker Engine API, ContainerStats).
        """
        found = self._call(
            "container.stats",
            lambda client: client.stats(container, stream=False, one_shot=True),
        )
        cpu_ns = _path(found, "cpu_stats", "cpu_usage", "total_usage")
        return EngineUsage(
            cpu_ms=None if cpu_ns is None else cpu_ns // 1_000_000,
            memory_peak_bytes=_path(found, "memory_stats", "max_usage"),
        )

    def volume_bytes(self, name: str) -> int | None:
        """Return the size of the files in a volume; None when the engine does not say."""
        # An engine of before API 1.42 counts images and containers too, and takes longer.
        found = self._call(
            "volume.usage", lambda client: _get(client, "system/df", type="volume").json()
        )
        for volume in found.get("Volumes") or ():
            if volume.get("Name") == name:
                size = _path(volume, "UsageData", "Size")
                return None if size is None or size < 0 else size
        return None


def _get(client: Any, what: str, **params: str) -> requests.Response:
    """Ask for what the SDK's own calls give without a time limit, or not at all."""
    response: requests.Response = client.get(
        f"{client.base_url}/v{client.api_version}/{what}",
        params=params,
        headers={"Accept-Encoding": "identity"},
        stream=True,
        timeout=client.timeout,
    )
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        raise docker.errors.create_api_error_from_http_exception(error) from error
    return response


def _path(value: Any, *names: str) -> int | None:
    """Return a number deep inside of what an engine said; None when it is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
