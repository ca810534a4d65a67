"""Dependencies: wheels that pip acquires on the host, every one checked against its hash.

Rule: wheels only. A source distribution runs code of its own while it is built; on the host that
is out of the question.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from harness.errors import AcquisitionError
from harness.execution.host.command import host_environment, run_command

DOWNLOAD_SECONDS = 900

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# PEP 599 and PEP 600. pip does not widen a platform tag by itself; Debian 12 has glibc 2.36.
_PLATFORMS = ("manylinux_2_36", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
_PIP_SETTINGS = ("PIP_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


def pip_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what pip sees: a host program's environment, and pip's own settings of the caller."""
    settings = {
        name: value for name, value in environment.items() if name.startswith(_PIP_SETTINGS)
    }
    return {**host_environment(environment), **settings}


def download_argv(
    requirements: tuple[Path, ...], folder: Path, *, python_version: str, architecture: str
) -> list[str]:
    """Return the pip command that acquires wheels for a worker image, whatever the host runs."""
    digits = python_version.replace(".", "")
    machine = _MACHINES[architecture]
    return [
        *(sys.executable, "-m", "pip", "download"),
        *("--quiet", "--no-input", "--disable-pip-version-check"),
        "--require-hashes",
        "--only-binary=:all:",
        "--implementation=cp",
        f"--python-version={python_version}",
        *(f"--abi={abi}" for abi in (f"cp{digits}", "abi3", "none")),
        *(f"--platform={platform}_{machine}" for platform in _PLATFORMS),
        f"--dest={folder}",
        *(f"--requirement={path}" for path in requirements),
    ]


def download_wheels(
    requirements: tuple[Path, ...],
    folder: Path,
    *,
    python_version: str,
    architecture: str,
    environment: Mapping[str, str],
    log: Path,
) -> None:
    """Acquire every wheel into a folder.

    Args:
        requirements: pinned requirements files.
        folder: takes the wheels.
        python_version: of the image.
        architecture: of the image.
        environment: of the caller; pip's own settings and the proxies are passed on.
        log: takes pip's output.

    Raises:
        AcquisitionError: pip is missing, nothing answers, or a hash is not the one that is pinned.
        StateError: the log can't be written.
    """
    run_command(
        download_argv(
            requirements, folder, python_version=python_version, architecture=architecture
        ),
        what="pip download",
        environment=pip_environment(environment),
        seconds=DOWNLOAD_SECONDS,
        log=log,
        error=AcquisitionError,
    )
