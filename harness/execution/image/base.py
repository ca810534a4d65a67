"""The base of an image: Debian with the definition's packages, and our init in it.

Rule: what depends on the time, the mirror or the host is removed, so that the same packages give
the same layer.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.execution.engine.spec import INIT_PATH
from harness.execution.image.archive import Layer
from harness.execution.image.cache import cached_layer, store_layer
from harness.execution.image.init_layer import HOME_MODE, INIT_MODE
from harness.execution.image.layer import write_tree_layer
from harness.execution.image.minimal import (
    MinimalSpec,
    install_packages,
    minimal_system,
    unpack_system,
)
from harness.execution.image.workshop import Workshop, in_root
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of, short
from harness.store.durable import state_error
from harness.store.state import StateFolder

BASE_KIND = "harness/image-base/v3"
"""To be raised when a base is made in another way than before, so that no old one is reused."""

# PEP 552: byte code that is not checked against its source's time, since all times are one.
_COMPILEALL = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")
_PYTHON = "usr/bin/python3"

_EMPTIED = (
    *("dev", "proc", "root", "run", "sys", "tmp", "debootstrap"),
    *("var/cache", "var/lib/apt/lists", "var/log", "var/tmp"),
    *("usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man"),
)
_REMOVED = (
    *("etc/.pwd.lock", "etc/apt/sources.list", "etc/hostname", "etc/resolv.conf"),
    *("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-"),
    *("var/lib/apt/extended_states", "var/lib/dbus/machine-id"),
    *("var/lib/dpkg/status-old", "var/lib/dpkg/diversions-old"),
    *("var/lib/dpkg/statoverride-old", "var/lib/systemd/random-seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSpec:
    """What decides a base; its key names it in the cache.

    Attributes:
        suite: Debian release.
        packages: on top of the smallest system.
        architecture: `amd64` or `arm64`.
        init: digest of init's program.
    """

    suite: str
    packages: tuple[str, ...]
    architecture: str
    init: Digest

    @property
    def key(self) -> Digest:
        """Return the digest of all of it."""
        members = {
            "_type": BASE_KIND,
            "suite": self.suite,
            "packages": list(self.packages),
            "architecture": self.architecture,
            "init": self.init,
        }
        return digest_of(canonical_bytes(members))


def base_layer(
    spec: BaseSpec, init: bytes, state: StateFolder, shop: Workshop, *, fresh: bool = False
) -> Layer:
    """Return the layer of a base: cached by its key, or made now.

    Args:
        spec: what to make.
        init: init's program.
        state: holds the cache.
        shop: where and how to make it.
        fresh: make it now in any case.

    Raises:
        SandboxUnavailableError: this host can't, or a program fails.
        VerificationError: the cache is damaged.
        StateError: the disk is full.
    """
    cached = None if fresh else cached_layer(state, "base", spec.key)
    if cached:
        shop.report(f"base: {short(cached.digest)} is cached")
        return cached
    # Init, compiled just before, has made the smallest system anew when all is to be fresh.
    minimal = MinimalSpec(suite=spec.suite, architecture=spec.architecture, mirror=shop.mirror)
    system = minimal_system(minimal, state, shop, fresh=False)
    tree = shop.folder / "tree"
    unpack_system(system, state, tree, shop)
    shop.report(f"base: install {', '.join(spec.packages)}")
    install_packages(tree, spec.packages, shop)
    shop.report("base: remove what depends on time and host, store the layer")
    try:
        _place_init(tree, init)
        _normalise(tree)
        if os.path.lexists(tree / _PYTHON):
            _compile_python(tree, shop)
    except OSError as error:
        raise state_error("write the base tree", error) from error
    return store_layer(state, "base", spec.key, lambda sink: write_tree_layer(tree, sink))


def _place_init(tree: Path, init: bytes) -> None:
    target = tree / INIT_PATH.removeprefix("/")
    target.parent.mkdir(mode=0o755)
    target.write_bytes(init)
    target.chmod(INIT_MODE)


def _compile_python(tree: Path, shop: Workshop) -> None:
    libraries = sorted(f"/{path.relative_to(tree)}" for path in tree.glob("usr/lib/python3*"))
    shop.run("byte code", in_root(tree, (f"/{_PYTHON}", *_COMPILEALL, *libraries)))


def _normalise(tree: Path) -> None:
    """Leave only what the packages decide; nothing here follows a symlink."""
    for name in _EMPTIED:
        folder = tree / name
        if folder.is_dir() and not folder.is_symlink():
            for path in folder.iterdir():
                _remove(path)
    for name in _REMOVED:
        (tree / name).unlink(missing_ok=True)
    for path in list(tree.glob("usr/**/__pycache__")):
        shutil.rmtree(path)
    for path in list(tree.glob("usr/share/doc/**/*")):
        if path.name != "copyright" and not path.is_dir():
            path.unlink()
    (tree / "workspace").mkdir(mode=0o755)
    # runc gives a tmpfs the mode of the folder it is mounted on.
    (tree / "home/worker").mkdir(mode=HOME_MODE)
    (tree / "etc/machine-id").write_bytes(b"")
    (tree / "etc/hostname").write_bytes(b"worker\n")
    shadow = tree / "etc/shadow"
    shadow.write_text(without_dates(shadow.read_text(encoding="utf-8")), encoding="utf-8")


def without_dates(shadow: str) -> str:
    """Return an /etc/shadow without the day of each last password change (shadow(5), field 3)."""
    lines = [line.split(":") for line in shadow.splitlines()]
    return "".join(":".join([*fields[:2], "", *fields[3:]]) + "\n" for fields in lines)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
