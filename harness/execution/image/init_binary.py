"""Our init as a static program: compiled once per host from `images/init`, then cached.

Rules:
    * The compiler is Debian's own, in a scratch system that is thrown away: the host needs none,
      and the images have none.
    * A caller who is not root can't make such a system; a `gcc` of the host's serves there.
    * What comes out has to be a static 64-bit ELF program, whoever compiled it.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from harness.errors import SandboxUnavailableError
from harness.execution.host.command import find_program
from harness.execution.image.cache import cached_layer, store_layer
from harness.execution.image.definition import InitSource
from harness.execution.image.minimal import (
    MinimalSpec,
    install_packages,
    minimal_system,
    unpack_system,
)
from harness.execution.image.workshop import Workshop, in_root
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of
from harness.store.durable import state_error
from harness.store.state import StateFolder

INIT_KIND = "harness/init-binary/v1"
SUITE = "bookworm"
"""The Debian release whose compiler is used for every image, whatever the image's own release."""

# The command in the head of init.c; -s and no build id, so that the binary depends on source and
# compiler only.
_FLAGS = (
    *("-std=gnu11", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror"),
    "-Wl,--build-id=none",
)
_PT_INTERP = 3
_PROGRAM_HEADER_BYTES = 56


def init_binary(
    source: InitSource,
    *,
    architecture: str,
    state: StateFolder,
    shop: Workshop,
    fresh: bool = False,
) -> bytes:
    """Return init's program: cached, or compiled now.

    Args:
        source: init's sources.
        architecture: `amd64` or `arm64`; the host's own.
        state: holds the cache.
        shop: where and how to compile it.
        fresh: compile it now in any case.

    Raises:
        SandboxUnavailableError: this host can't, or a program fails.
        VerificationError: the cache is damaged.
        StateError: the disk is full.
    """
    key = init_key(source, architecture)
    cached = None if fresh else cached_layer(state, "init", key)
    if cached:
        return b"".join(cached.read())
    try:
        if _by_host():
            made = _compile_on_host(source.file, shop)
        else:
            made = _compile_in_scratch(source.file, architecture, state, shop, fresh=fresh)
    except OSError as error:
        raise state_error("compile init", error) from error
    if not is_static_program(made):
        raise SandboxUnavailableError(
            "init: expected a static 64-bit ELF program from the compiler"
        )
    store_layer(state, "init", key, lambda sink: sink.write(made))
    return made


def init_key(source: InitSource, architecture: str) -> Digest:
    """Return the key that init's program has in the cache: sources, architecture and compiler."""
    members = {
        "_type": INIT_KIND,
        "init": source.digest,
        "architecture": architecture,
        "compiler": "host" if _by_host() else SUITE,
    }
    return digest_of(canonical_bytes(members))


def _by_host() -> bool:
    return os.geteuid() != 0


def is_static_program(data: bytes) -> bool:
    """Tell whether bytes are a 64-bit ELF program that asks for no dynamic loader (elf(5))."""
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    try:
        (start,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        kinds = [struct.unpack_from("<I", data, start + size * i)[0] for i in range(count)]
    except struct.error:
        return False
    return size == _PROGRAM_HEADER_BYTES and bool(kinds) and _PT_INTERP not in kinds


def _compile_in_scratch(
    source: Path, architecture: str, state: StateFolder, shop: Workshop, *, fresh: bool
) -> bytes:
    spec = MinimalSpec(suite=SUITE, architecture=architecture, mirror=shop.mirror)
    system = minimal_system(spec, state, shop, fresh=fresh)
    shop.report("init: compile it in a scratch system")
    scratch = shop.folder / "scratch"
    unpack_system(system, state, scratch, shop)
    install_packages(scratch, ("gcc", "libc6-dev"), shop)
    (scratch / "build").mkdir()
    shutil.copyfile(source, scratch / "build/init.c")
    compile_it = ("gcc", *_FLAGS, "-o", "/build/init", "/build/init.c")
    shop.run("compile init", in_root(scratch, compile_it))
    made = (scratch / "build/init").read_bytes()
    shutil.rmtree(scratch)
    return made


def _compile_on_host(source: Path, shop: Workshop) -> bytes:
    compiler = find_program("gcc")
    if compiler is None:
        raise SandboxUnavailableError(
            f"init: expected user 0, or a gcc on this host, got user {os.geteuid()} and none",
            hint="run it as root, or ask an administrator for gcc and libc6-dev",
        )
    shop.report("init: compile it with this host's gcc")
    made = shop.folder / "init"
    shop.run("compile init", (compiler, *_FLAGS, "-o", str(made), str(source)))
    return made.read_bytes()
