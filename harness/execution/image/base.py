"""The base: a Debian root file system by debootstrap, with our init compiled into it.

Rules:
    * The archive's signature is always checked (`--force-check-gpg`).
    * Everything runs in mount and process namespaces of its own (`unshare`): when a build ends, by
      a SIGKILL too, no mount and no process of it is left.
    * The compiler is Debian's own, installed into a scratch copy of the tree that is thrown away:
      the host needs none, and the image has none.
    * What depends on the time, the mirror or the host is removed, so that the same packages give
      the same layer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SandboxUnavailableError
from harness.execution.host.command import find_program, host_environment, run_command
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of
from harness.store.durable import state_error

BASE_KIND = "harness/image-base/v2"
"""To be raised when a base is made in another way than before, so that no old one is reused."""
INIT_PATH = "/.harness/init"
FREE_BYTES = 2 * 1024**3
"""Free space a base needs: the tree, its copy with a compiler, and the layer (1.2 GB measured)."""

DEBOOTSTRAP_SECONDS = 1800
STEP_SECONDS = 600

_PROGRAMS = {
    "debootstrap": "debootstrap",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "gpgv": "gpgv",
}
# setpriv: the kernel ends unshare when we die, and unshare what it started.
_UNSHARE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--ipc", "--uts", "--pid", "--fork", "--kill-child"),
)
# The command in the head of init.c; -s and no build id, so that the binary depends on source and
# compiler only.
_GCC = (
    *("gcc", "-std=gnu11", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror"),
    *("-Wl,--build-id=none", "-o", "/build/init", "/build/init.c"),
)

# PEP 552: byte code that is not checked against its source's time, since all times are one.
_COMPILEALL = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")

_EMPTIED = (
    *("dev", "proc", "root", "run", "sys", "tmp", "debootstrap"),
    *("var/cache", "var/lib/apt/lists", "var/log", "var/tmp"),
    *("usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man"),
)
_REMOVED = (
    *("etc/.pwd.lock", "etc/apt/sources.list", "etc/hostname", "etc/resolv.conf"),
    *("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-"),
    *("var/lib/dbus/machine-id", "var/lib/dpkg/status-old", "var/lib/dpkg/diversions-old"),
    *("var/lib/dpkg/statoverride-old", "var/lib/systemd/random-seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSpec:
    """What decides a base; its key names it in the cache.

    Attributes:
        suite: Debian release.
        packages: on top of `minbase`.
        architecture: `amd64` or `arm64`.
        init: digest of init's sources.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where and how a base is built.

    Attributes:
        folder: a folder of its own; the caller removes it.
        log: takes what the programs print.
        environment: of the caller; the proxies are passed on.
        mirror: address of a Debian mirror; empty for debootstrap's own.
        report: is told what happens now.
    """

    folder: Path
    log: Path
    environment: Mapping[str, str]
    mirror: str
    report: Callable[[str], None]

    def run(self, what: str, argv: tuple[str, ...], seconds: float = STEP_SECONDS) -> None:
        """Run one host program.

        Raises:
            SandboxUnavailableError: it fails or is too slow.
        """
        environment = {**host_environment(self.environment), "PYTHONHASHSEED": "0"}
        run_command(argv, what=what, environment=environment, seconds=seconds, log=self.log)


def check_host(*, uid: int, find: Callable[[str], str | None], free: int) -> None:
    """Check that this host can build a base at all.

    Args:
        uid: effective user id.
        find: returns a program's path, or None.
        free: bytes where it would be built.

    Raises:
        SandboxUnavailableError: not root, a program is missing, or too little free space.
    """
    if uid != 0:
        raise SandboxUnavailableError(
            f"image build: expected user 0 (debootstrap needs chroot), got {uid}",
            hint="ask an administrator to run `harness image build` as root on this host",
        )
    missing = sorted(package for program, package in _PROGRAMS.items() if not find(program))
    if missing:
        raise SandboxUnavailableError(
            f"image build: missing on this host: {', '.join(missing)}",
            hint=f"run `harness setup --images`, or apt-get install {' '.join(missing)}",
        )
    if free < FREE_BYTES:
        raise SandboxUnavailableError(
            f"image build: expected {FREE_BYTES} free bytes in the state folder, got {free}",
            hint="free some disk space, or set HARNESS_STATE to a folder on another disk",
        )


def build_base(spec: BaseSpec, init: Path, shop: Workshop) -> Path:
    """Make the tree of a base.

    Args:
        spec: what to make.
        init: init's source file.
        shop: where and how.

    Returns:
        The root folder of the tree, in the workshop's folder.

    Raises:
        SandboxUnavailableError: this host can't, or a program fails.
        StateError: the disk is full.
    """
    free = shutil.disk_usage(shop.folder).free
    check_host(uid=os.geteuid(), find=find_program, free=free)
    tree, scratch = shop.folder / "tree", shop.folder / "scratch"
    shop.report(f"debootstrap: Debian {spec.suite} with {', '.join(spec.packages)}")
    shop.run("debootstrap", debootstrap_argv(spec, tree, shop.mirror), DEBOOTSTRAP_SECONDS)
    shop.report("init: compile it in a scratch copy of the base")
    shop.run("scratch copy", ("cp", "-a", "--reflink=auto", str(tree), str(scratch)))
    try:
        _compile_init(init, scratch, tree, shop)
        shop.report("base: remove what depends on time and host, compile byte code")
        _normalise(tree)
        libraries = sorted(f"/{path.relative_to(tree)}" for path in tree.glob("usr/lib/python3*"))
        shop.run("byte code", _in_root(tree, ("/usr/bin/python3", *_COMPILEALL, *libraries)))
    except OSError as error:
        raise state_error("write the base tree", error) from error
    return tree


def debootstrap_argv(spec: BaseSpec, tree: Path, mirror: str) -> tuple[str, ...]:
    """Return the debootstrap command, in namespaces of its own."""
    return (
        *_UNSHARE,
        "--mount-proc",
        "debootstrap",
        "--variant=minbase",
        "--force-check-gpg",
        f"--arch={spec.architecture}",
        f"--include={','.join(sorted(spec.packages))}",
        spec.suite,
        str(tree),
        *((mirror,) if mirror else ()),
    )


def _in_root(tree: Path, argv: tuple[str, ...], *, network: bool = False) -> tuple[str, ...]:
    isolation = () if network else ("--net",)
    return (*_UNSHARE, *isolation, f"--mount-proc={tree}/proc", "chroot", str(tree), *argv)


def _compile_init(init: Path, scratch: Path, tree: Path, shop: Workshop) -> None:
    apt = ("apt-get", "-q", "-y", "--no-install-recommends")
    shop.run("apt-get update", _in_root(scratch, (*apt, "update"), network=True))
    install = (*apt, "install", "gcc", "libc6-dev")
    shop.run("apt-get install gcc", _in_root(scratch, install, network=True))
    (scratch / "build").mkdir()
    shutil.copyfile(init, scratch / "build" / "init.c")
    shop.run("compile init", _in_root(scratch, _GCC))
    target = tree / INIT_PATH.removeprefix("/")
    target.parent.mkdir(mode=0o755)
    shutil.copyfile(scratch / "build" / "init", target)
    target.chmod(0o555)


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
    (tree / "home/worker").mkdir(mode=0o700)
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
