"""Hostile tests: payloads run in real workers through the real command line, by docs alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import engine_url, images_lock  # noqa: F401 - fixtures, found by name
from tests.e2e.driver import Bed, untouched
from tests.e2e.project import LISTED, _make_key, only_operation, reviewers, write

POLICY = """\
version: 1
isolation:
  limits: { cpus: 1, memory: 256MiB, wall: 20s, output: 2MiB, pids: 100, workspace: 16MiB }
approval: { plan: 1, diff: 1, valid_for: 1h, reviewers: reviewers }
"""
RECIPE = """\
version: 1
kind: KIND
description: Attack.
image: python
steps:
  - run: [python3, attack.py]
writable: ["**"]
"""
REPORT = "outputs:\n  - { name: results, path: out/junit.xml, report: junit }\n"


@dataclass(frozen=True, slots=True)
class Landed:
    """What one attack left: the run as JSON, and its diff as JSON; `{}` without one."""

    run: dict[str, Any]
    diff: dict[str, Any]

    @property
    def outcome(self) -> str:
        return str(self.run["outcome"]["text"])

    def reasons(self, kind: str) -> dict[str, list[str]]:
        """Return the reasons for each path, of `flags` or `obstacles`."""
        found: dict[str, list[str]] = {}
        for item in self.diff[kind]:
            found.setdefault(item.get("path") or item["path_b64"], []).append(item["reason"])
        return found

    @property
    def by_products(self) -> dict[str, str]:
        return {item["path"]: item["reason"] for item in self.diff["byProducts"]["items"]}


@dataclass(frozen=True, slots=True)
class Arena:
    """One project whose recipes run `attack.py`, which each test writes anew."""

    bed: Bed

    @property
    def project(self) -> Path:
        return self.bed.project

    def attack(self, payload: str, *, kind: str = "build", code: int = 0) -> Landed:
        """Seal, approve and run a payload; the project must be the same afterwards."""
        write(self.project / "attack.py", payload.encode())
        plan = self.bed("seal", kind, "--json").json()["plan"]
        with untouched(self.bed):
            ran = self.bed("run", plan, "--key", str(self.bed.key("ada")), "--json", code=code)
        done = only_operation(ran.json())
        diff = self.bed("diff", done["run"], "--json").json() if done["diff"] else {}
        return Landed(done, diff)

    def engine_is_clean(self) -> bool:
        """Tell whether no run left a folder; the folder stays as long as anything else does."""
        return list((self.bed.state / "runs").iterdir()) == []


@pytest.fixture(scope="session")
def _arena(
    engine_url: str,  # noqa: F811 - the fixture
    images_lock: Path,  # noqa: F811 - the fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Arena:
    bed = Bed(home=tmp_path_factory.mktemp("arena"), engine=engine_url)
    for folder in (bed.project, bed.state, bed.home / "keys"):
        folder.mkdir(mode=0o700)
    shutil.copy(images_lock, bed.state)
    for name in LISTED:
        _make_key(bed.key(name))
    write(bed.project / "harness.yaml", b"version: 1\nname: arena\n")
    write(bed.project / "policies" / "default.yaml", POLICY.encode())
    write(bed.project / "policies" / "reviewers", reviewers(bed, LISTED).encode())
    for kind, more in (("build", ""), ("test", REPORT)):
        text = RECIPE.replace("KIND", kind) + more
        write(bed.project / "recipes" / f"{kind}.yaml", text.encode())
    write(bed.project / "data" / "old.txt", b"old\n")
    write(bed.project / "swap" / "a.txt", b"a\n")
    bed("recipe", "check")
    bed.keep("fresh")
    return Arena(bed)


@pytest.fixture
def arena(_arena: Arena) -> Iterator[Arena]:
    """Return the arena as it was at first; nothing of a run may be left when the test ends."""
    _arena.bed.come_back("fresh")
    yield _arena
    assert _arena.engine_is_clean()
    _arena.bed.ledger.verify()
