"""A Debian system for tests without debootstrap: what a base is made of, in a few small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.execution.image import base as base_module
from harness.execution.image import build as build_module
from harness.execution.image.archive import Layer, layer_of

INIT = b"our init"


class DebianArchive:
    """Stands in for debootstrap and apt.

    Attributes:
        version: of the one package that it has.
        day: what a real build would leave of the time.
        made: how often something was taken from it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.version, self.day, self.made = "1.0", "20000", 0
        monkeypatch.setattr(base_module, "minimal_system", self._minimal)
        monkeypatch.setattr(base_module, "unpack_system", self._unpack)
        monkeypatch.setattr(base_module, "install_packages", self._install)
        monkeypatch.setattr(build_module, "init_binary", lambda *_, **__: INIT)

    def _minimal(self, *_: object, **__: object) -> Layer:
        return layer_of(b"system")

    def _unpack(self, _system: object, _state: object, tree: Path, _shop: object) -> None:
        for folder in ("etc", "home", "var/log", "var/cache/apt", "usr/share/doc/tool", "dev"):
            (tree / folder).mkdir(parents=True)
        (tree / "etc/shadow").write_text(f"root:*:{self.day}:0:99999:7:::\n")
        (tree / "etc/hostname").write_text("build-host\n")
        (tree / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
        (tree / "etc/machine-id").write_text(self.day)
        (tree / "var/log/dpkg.log").write_text(self.day)
        (tree / "var/cache/apt/pkgcache.bin").write_text(self.day)
        (tree / "usr/share/doc/tool/changelog").write_text("long")
        (tree / "usr/share/doc/tool/copyright").write_text("free")
        (tree / "dev/null").write_text("")

    def _install(self, tree: Path, _packages: object, _shop: object) -> None:
        self.made += 1
        info = tree / "var/lib/dpkg/info"
        info.mkdir(parents=True)
        (info / "tool.list").write_text("/usr/bin/tool\n")
        status = f"Package: tool\nStatus: install ok installed\nVersion: {self.version}\n"
        (tree / "var/lib/dpkg/status").write_text(status)
        (tree / "var/lib/dpkg/status-old").write_text(self.day)
        (tree / "usr/bin").mkdir()
        (tree / "usr/bin/tool").write_text(f"tool {self.version}")
        (tree / "usr/bin/tool").chmod(0o4755)
