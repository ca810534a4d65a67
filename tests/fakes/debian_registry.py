"""Debian's `docker-registry` on loopback, started for the tests, and filled without an engine."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.model.digest import digest_of
from tests.fakes.image_archives import TestImage, docker_manifest, oci_index, oci_manifest

START_SECONDS = 20
_SETTINGS = """\
version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: FOLDER}}
http: {addr: "127.0.0.1:0"}
"""
_LISTENING = re.compile(r"listening on (127\.0\.0\.1:\d+)")


@dataclass(frozen=True, slots=True)
class DebianRegistry:
    """A registry that listens.

    Attributes:
        host: `127.0.0.1:PORT`; engines speak plain HTTP to this network.
        process: the server.
    """

    host: str
    process: subprocess.Popen[bytes]

    def publish(self, image: TestImage, repository: str, tag: str, *, docker: bool = False) -> str:
        """Put an image under a tag, and return its manifest's digest.

        Args:
            image: which.
            repository: its path.
            tag: replaced when it is there.
            docker: the manifest is of Docker's own format, not of OCI's.
        """
        manifest, blobs = docker_manifest(image) if docker else oci_manifest(image)
        for blob in blobs:
            begun = self._ask("POST", f"/v2/{repository}/blobs/uploads/")
            place = urlsplit(begun["location"])
            self._ask("PUT", f"{place.path}?{place.query}&digest={digest_of(blob)}", blob)
        return self._put_manifest(manifest, repository, tag)

    def publish_index(self, images: Sequence[TestImage], repository: str, tag: str) -> str:
        """Put images of several platforms under one tag, and return the index's digest."""
        for image in images:
            self.publish(image, repository, f"{tag}-{image.architecture}")
        return self._put_manifest(oci_index(*images), repository, tag)

    def _put_manifest(self, manifest: bytes, repository: str, tag: str) -> str:
        kind = str(json.loads(manifest)["mediaType"])
        self._ask("PUT", f"/v2/{repository}/manifests/{tag}", manifest, kind)
        return digest_of(manifest)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def _ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/octet-stream"
    ) -> dict[str, str]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status in (201, 202), f"{method} {path}: {answer.status} {said!r}"
            return {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()


@contextmanager
def debian_registry(folder: Path) -> Iterator[DebianRegistry]:
    """Start a registry with all it has below a folder; skip where the program is not installed."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("no docker-registry; apt-get install docker-registry")
    settings, log = folder / "registry.yml", folder / "registry.log"
    settings.write_text(_SETTINGS.replace("FOLDER", str(folder / "store")))
    with log.open("wb") as stream:
        process = subprocess.Popen([program, "serve", settings], stdout=stream, stderr=stream)
    try:
        yield DebianRegistry(_wait_for_port(process, log), process)
    finally:
        process.kill()
        process.wait()


def _wait_for_port(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while not (found := _LISTENING.search(log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]
