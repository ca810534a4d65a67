"""A rootless engine of the tests: `dockerd` as a plain user, in user namespaces of its own.

The user and its range of ids exist in a private mount namespace only; the host's own lists of users
are left alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from harness.execution.host.ping import ping
from harness.model.digest import Digest, parse_digest

UID = 61500
PROGRAMS = ("dockerd", "rootlesskit", "newuidmap", "busybox")
START_SECONDS = 60

INSIDE = """
set -e
mount --make-rprivate /
for name in passwd group; do mount --bind "$1/$name" "/etc/$name"; done
for name in subuid subgid; do
  [ -e "/etc/$name" ] || touch "/etc/$name"
  mount --bind "$1/range" "/etc/$name"
done
exec setpriv --reuid "$2" --regid "$2" --clear-groups env --ignore-environment \
  PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$1/home" XDG_RUNTIME_DIR="$1/home" \
  rootlesskit --net=host --copy-up=/etc --copy-up=/run --state-dir="$1/home/kit" \
  sh -c 'rm -f /run/docker /run/containerd /run/xtables.lock; exec "$@"' - \
  dockerd --rootless --config-file="$1/home/empty.json" --data-root="$1/home/data" \
  --exec-root="$1/home/exec" --pidfile="$1/home/docker.pid" --host="unix://$1/home/docker.sock" \
  --bridge=none --iptables=false --ip-forward=false
"""


@dataclass(frozen=True, slots=True)
class RootlessEngine:
    """Where it is, and whose.

    Attributes:
        url: its address.
        home: its user's home.
    """

    url: str
    home: Path


@contextlib.contextmanager
def rootless_engine() -> Iterator[RootlessEngine]:
    """Start one; end it, with all it has."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in PROGRAMS):
        pytest.skip(f"a rootless engine for tests needs root and {', '.join(PROGRAMS)}")
    folder = Path(tempfile.mkdtemp(prefix="harness-rootless-"))
    folder.chmod(0o755)
    _write_lists(folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", INSIDE, "-", folder, str(UID)],
            stdout=log,
            stderr=log,
        )
    engine = RootlessEngine(f"unix://{folder / 'home' / 'docker.sock'}", folder / "home")
    try:
        until = time.monotonic() + START_SECONDS
        while ping(engine.url).answer != "answers":
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"no rootless engine: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield engine
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(folder)


def _write_lists(folder: Path) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "empty.json").write_text("{}")
    for path in (home, home / "empty.json"):
        os.chown(path, UID, UID)
    user = f"rootless:x:{UID}:{UID}::{home}:/bin/sh\n"
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + user)
    (folder / "group").write_text(Path("/etc/group").read_text() + f"rootless:x:{UID}:\n")
    (folder / "range").write_text("rootless:300000:65536\n")


def init_of(url: str, image: Digest) -> bytes:
    """Return the init that was baked into a worker image."""
    client = docker.APIClient(base_url=url, version="auto")
    try:
        container = client.create_container(image, ["never started"])["Id"]
        data = b"".join(client.get_archive(container, "/.harness/init")[0])
        client.remove_container(container)
    finally:
        client.close()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = archive.extractfile("init")
        assert found is not None
        return found.read()


def load_busybox(url: str, init: bytes) -> Digest:
    """Load an image of our init and busybox, and return its id."""
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in (".", ".harness", "bin"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for name, data in ((".harness/init", init), ("bin/busybox", busybox)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    client = docker.APIClient(base_url=url, version="auto")
    try:
        said = client.import_image_from_data(stream.getvalue())
        return parse_digest(said.rpartition('"status":"')[2].partition('"')[0])
    finally:
        client.close()
