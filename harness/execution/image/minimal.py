"""The smallest Debian system, made by debootstrap once; every base begins as a copy of it.

Rules:
    * The archive's signature is always checked (`--force-check-gpg`).
    * It is kept as debootstrap left it, as a tar archive in the state folder: another image needs
      only its own packages on top, which takes seconds instead of minutes.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.execution.host.command import find_program
from harness.execution.image.archive import Layer
from harness.execution.image.cache import cached_layer, store_layer
from harness.execution.image.workshop import NAMESPACES, Workshop, check_host, in_root
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of
from harness.store.durable import state_error
from harness.store.state import StateFolder

MINIMAL_KIND = "harness/minimal-system/v1"
"""To be raised when one is made in another way than before, so that no old one is reused."""

DEBOOTSTRAP_SECONDS = 1800

_RESOLVERS = Path("/etc/resolv.conf")
_NO_SERVICES = "usr/sbin/policy-rc.d"
_APT = ("/usr/bin/apt-get", "-q", "-y", "--no-install-recommends")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalSpec:
    """What decides a smallest system.

    Attributes:
        suite: Debian release.
        architecture: `amd64` or `arm64`.
        mirror: address of a Debian mirror; empty for debootstrap's own.
    """

    suite: str
    architecture: str
    mirror: str

    @property
    def key(self) -> Digest:
        """Return the digest of all of it."""
        return digest_of(
            canonical_bytes(
                {
                    "_type": MINIMAL_KIND,
                    "suite": self.suite,
                    "architecture": self.architecture,
                    "mirror": self.mirror,
                }
            )
        )


def minimal_system(spec: MinimalSpec, state: StateFolder, shop: Workshop, *, fresh: bool) -> Layer:
    """Return the archive of a smallest system: cached, or made now.

    Args:
        spec: which.
        state: holds the cache.
        shop: where and how to make it.
        fresh: make it now in any case.

    Raises:
        SandboxUnavailableError: this host can't, or a program fails.
        VerificationError: the cache is damaged.
        StateError: the disk is full.
    """
    check_host(uid=os.geteuid(), find=find_program, free=shutil.disk_usage(shop.folder).free)
    cached = None if fresh else cached_layer(state, "minimal", spec.key)
    if cached:
        shop.report(f"debootstrap: Debian {spec.suite} is cached")
        return cached
    shop.report(f"debootstrap: the smallest Debian {spec.suite}")
    tree, packed = shop.folder / "minimal", shop.folder / "minimal.tar"
    shop.run("debootstrap", debootstrap_argv(spec, tree), DEBOOTSTRAP_SECONDS)
    shop.run("pack the system", ("tar", "-cf", str(packed), "-C", str(tree), "."))
    try:
        shutil.rmtree(tree)
        with packed.open("rb") as stream:
            stored = store_layer(
                state, "minimal", spec.key, lambda sink: shutil.copyfileobj(stream, sink, 1 << 20)
            )
        packed.unlink()
    except OSError as error:
        raise state_error("store the smallest system", error) from error
    return stored


def debootstrap_argv(spec: MinimalSpec, tree: Path) -> tuple[str, ...]:
    """Return the debootstrap command, in namespaces of its own."""
    return (
        *NAMESPACES,
        "--mount-proc",
        "debootstrap",
        "--variant=minbase",
        "--force-check-gpg",
        f"--arch={spec.architecture}",
        spec.suite,
        str(tree),
        *((spec.mirror,) if spec.mirror else ()),
    )


def unpack_system(system: Layer, state: StateFolder, tree: Path, shop: Workshop) -> None:
    """Unpack a smallest system into a folder that is made, with the host's name servers.

    Raises:
        SandboxUnavailableError: tar fails.
        VerificationError: the cached bytes have another digest.
        StateError: the disk is full.
    """
    for _ in system.read():  # the digest is checked at the end
        pass
    try:
        tree.mkdir(mode=0o755)
        packed = state.blobs.path_of(system.digest)
        unpack = ("tar", "-xpf", str(packed), "--numeric-owner", "-C", str(tree))
        shop.run("unpack the system", unpack)
        if _RESOLVERS.exists():
            (tree / "etc/resolv.conf").unlink(missing_ok=True)
            shutil.copyfile(_RESOLVERS, tree / "etc/resolv.conf")
    except OSError as error:
        raise state_error("unpack the smallest system", error) from error


def install_packages(tree: Path, packages: tuple[str, ...], shop: Workshop) -> None:
    """Install Debian packages into a tree, by its own apt, which checks the archive's signature.

    Raises:
        SandboxUnavailableError: a package is not there, or the archive can't be reached.
        StateError: the tree can't be written.
    """
    policy = tree / _NO_SERVICES
    try:
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")  # invoke-rc.d(8): forbidden
        policy.chmod(0o755)
        shop.run("apt-get update", in_root(tree, (*_APT, "update"), network=True))
        names = " ".join(packages)
        install = (*_APT, "install", "--", *sorted(packages))
        shop.run(f"apt-get install {names}", in_root(tree, install, network=True))
        policy.unlink()
    except OSError as error:
        raise state_error("install packages", error) from error
