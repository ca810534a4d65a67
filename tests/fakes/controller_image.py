"""The controller's own image, built by the Dockerfile at the top, without a network.

There is no registry here, so its base is a worker image with what a Python image has besides: pip,
taken from this interpreter, and ssh-keygen, taken from this host.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker
import pip
from docker.errors import APIError

from harness.model.digest import Digest

ROOT = Path(__file__).resolve().parent.parent.parent

BASE = """
FROM {image}
COPY pip /usr/lib/python3/dist-packages/pip
COPY ssh-keygen /usr/bin/ssh-keygen
"""
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
PACKAGES = "--no-index --find-links /src/wheels sealed-harness"
DECOYS = (".env", "state/host/key.pem", "harness/__pycache__/decoy.pyc", "tests/decoy.py")
"""What a checkout may hold and an image must not get."""

_LAYER = re.compile(r"^ ---> ([0-9a-f]{12})$|^Successfully built ([0-9a-f]{12})$")


@dataclass(slots=True)
class Builder:
    """Builds with the engine's classic builder, and knows what it has to remove."""

    client: docker.APIClient
    made: list[str]

    def build(self, context: Path, arguments: Mapping[str, str]) -> str:
        """Build an image and return its id; fail with what the builder said."""
        said = []
        for event in self.client.build(
            path=str(context), rm=True, network_mode="none", buildargs=dict(arguments), decode=True
        ):
            said.append(str(event.get("stream") or event.get("error") or ""))
            assert "error" not in event, "".join(said)
            match = _LAYER.match(said[-1].rstrip())
            if match:
                self.made.append(match[1] or match[2])
        return self.made[-1]

    def remove(self) -> None:
        for image in reversed(self.made):
            with contextlib.suppress(APIError):
                self.client.remove_image(image)


@contextlib.contextmanager
def controller_image(engine: str, image: Digest, folder: Path) -> Iterator[str]:
    """Yield the id of the controller's image for the block.

    Args:
        engine: address of the engine that builds it.
        image: a worker image with Python 3.11 and git.
        folder: gets the build contexts.
    """
    builder = Builder(docker.APIClient(base_url=engine, version="auto", timeout=120), [])
    kept = {item["Id"].removeprefix("sha256:")[:12] for item in builder.client.images(all=True)}
    try:
        context = controller_context(folder / "controller")
        with ThreadPoolExecutor() as pool:
            wheels = [pool.submit(lay, context / "wheels") for lay in (_own_wheel, _needed_wheels)]
            base = builder.build(_base_context(folder / "base", image), {})
            for laid in wheels:
                laid.result()
        yield builder.build(context, {"BASE": base, "PACKAGES": PACKAGES})
    finally:
        builder.made = [made for made in builder.made if made not in kept]
        builder.remove()
        builder.client.close()


def controller_context(folder: Path) -> Path:
    """Copy what the Dockerfile may see of this checkout, and decoys beside it."""
    folder.mkdir()
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name in ("Dockerfile", ".dockerignore", *(line[1:] for line in lines if line[:1] == "!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    for name in DECOYS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("decoy")
    return folder


def _base_context(folder: Path, image: Digest) -> Path:
    folder.mkdir()
    shutil.copytree(Path(pip.__file__).parent, folder / "pip")
    shutil.copy(shutil.which("ssh-keygen") or "", folder / "ssh-keygen")
    (folder / "Dockerfile").write_text(BASE.format(image=image))
    return folder


def _own_wheel(folder: Path) -> None:
    """Make the harness's wheel."""
    subprocess.run([*PIP, "wheel", "--no-deps", f"--wheel-dir={folder}", str(ROOT)], check=True)


def _needed_wheels(folder: Path) -> None:
    """Fetch the wheels of what the harness needs, for the image's Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    only = ["--only-binary=:all:", "--python-version=3.11"]
    needed = project["dependencies"]
    subprocess.run([*PIP, "download", *only, f"--dest={folder}", *needed], check=True)
