"""The ground that figures are taken on: projects of any size, with state folders of their own.

Everything lies in one folder, on one file system, and nothing is deleted before the end: a disk
that has just lost thousands of files is slow to make new ones, which would hit one side only.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.execution.snapshot.stat_cache import RACY_NS
from harness.execution.worker.live import Sink
from harness.execution.worker.operation import StopRequest
from harness.flows.approve import decide
from harness.flows.operation import Tell
from harness.flows.run import Ran, run_plan
from harness.flows.seal import Sealed, seal_recipes
from harness.flows.session import Session
from harness.flows.work import begin_work
from harness.model.approval import NAMESPACES
from harness.model.digest import Digest

ROOT = Path(__file__).resolve().parent.parent.parent

FILES_A_FOLDER = 25
LINES = (10, 120)
"""Fewest and most lines of a file; on average it has 1.4 KB."""

EDITED = "pkg000/sub00/mod00/file_00.py"
"""The file that the recipe, and the bench itself, edits."""

TOOL = f"""\
import sys
print("started", flush=True)
with open({EDITED!r}, "a") as edited:
    edited.write("edited = 1\\n")
"""

RECIPE = """\
version: 1
kind: build
description: Edit one file.
image: python
workspace: STRATEGY
steps:
  - run: [python3, tool.py]
writable: [/pkg000/]
"""

POLICY = """\
version: 1
isolation:
  limits: { cpus: 1, memory: 512MiB, wall: 5m, output: 8MiB, workspace: 4GiB }
approval: { plan: 1, diff: 1, valid_for: 1d, reviewers: reviewers }
"""

GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def write_tree(root: Path, files: int) -> None:
    """Write so many source files, three folders deep, the same at each call."""
    chance = random.Random(files)  # noqa: S311 - the same tree each time is the point
    for number in range(files):
        module, place = divmod(number, FILES_A_FOLDER)
        folder = root / f"pkg{module // 400:03d}/sub{module // 20 % 20:02d}/mod{module % 20:02d}"
        if not place:
            folder.mkdir(parents=True)
        lines = (
            f"x{chance.randrange(10**9)} = {chance.randrange(10**9)}\n"
            for _ in range(chance.randrange(*LINES))
        )
        (folder / f"file_{place:02d}.py").write_text("".join(lines))


@dataclass(slots=True, kw_only=True)
class Bed:
    """One project and one state folder.

    Attributes:
        project: its folder.
        state: its state folder.
        key: of its one reviewer.
        session: opened for work.
    """

    project: Path
    state: Path
    key: Path
    session: Session

    def seal(self) -> Sealed:
        """Seal the recipe."""
        return seal_recipes(self.session, ["edit"], chosen={}, why="", requester="bench")

    def approve(self, sealed: Sealed) -> Digest:
        """Approve a plan; return its hash."""
        digest = sealed.plan.digest
        decide(
            self.session,
            digest,
            decision="approve",
            key=self.key,
            comment="",
            interactive=False,
        )
        return digest

    def run(self, digest: Digest, *, sink: Sink | None = None, tell: Tell = lambda _: None) -> Ran:
        """Run an approved plan; a run that did not pass spoils every figure."""
        ran = run_plan(self.session, digest, sink=sink, stop=StopRequest(), tell=tell)
        if ran.kind != "passed":
            raise SystemExit(f"bench: the recipe ended as {ran.kind}: {ran.problems}")
        return ran

    def edit(self) -> int:
        """Edit one file of the project; return its size."""
        with (self.project / EDITED).open("a") as edited:
            edited.write(f"edited = {secrets.token_hex(8)!r}\n")
        return (self.project / EDITED).stat().st_size

    def git(self, *words: str, folder: Path | None = None) -> None:
        """Run git on the project; with another folder for the repository when one is given."""
        environment = {**os.environ, **GIT}
        if folder:
            environment |= {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(self.project)}
        subprocess.run(
            ["git", *words],
            cwd=self.project,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def command(self, *words: str) -> None:
        """Run the command line on the project."""
        subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=self.project,
            env={**os.environ, "HARNESS_STATE": str(self.state), "PYTHONPATH": str(ROOT)},
            check=True,
            stdout=subprocess.DEVNULL,
        )


@dataclass(slots=True)
class Ground:
    """Makes beds below one folder.

    Attributes:
        folder: holds everything.
        images_lock: of a state folder that has the worker image `python`.
    """

    folder: Path
    images_lock: Path
    _trees: dict[int, Path] = field(default_factory=dict)

    def tree(self, files: int, *, strategy: str = "auto") -> Path:
        """Return a project of so many source files, made once, with a git repository."""
        if strategy != "auto" or files not in self._trees:
            root = self.folder / f"project-{files}-{secrets.token_hex(3)}"
            write_tree(root, files)
            self._write_project(root, strategy)
            self._trees.setdefault(files, root)
            return root
        return self._trees[files]

    def bed(self, project: Path) -> Bed:
        """Return a bed with a state folder of its own."""
        state = self.folder / f"state-{secrets.token_hex(3)}"
        state.mkdir(mode=0o700)
        shutil.copy(self.images_lock, state)
        # The flows find it there, as they do for a command.
        os.environ["HARNESS_STATE"] = str(state)
        session, _ = begin_work(project)
        return Bed(project=project, state=state, key=self._key, session=session)

    @property
    def _key(self) -> Path:
        key = self.folder / "key"
        if not key.exists():
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key)]
            subprocess.run(words, check=True)
        return key

    def _write_project(self, root: Path, strategy: str) -> None:
        kind, key, *_ = self._key.with_suffix(".pub").read_text().split()
        allowed = ",".join(NAMESPACES.values())
        for name, text in {
            "harness.yaml": "version: 1\nname: bench\n",
            "tool.py": TOOL,
            "recipes/edit.yaml": RECIPE.replace("STRATEGY", strategy),
            "policies/default.yaml": POLICY,
            "policies/reviewers": f'bench namespaces="{allowed}" {kind} {key}\n',
        }.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)


def let_age(seconds: float = RACY_NS / 1e9 + 0.2) -> None:
    """Wait until what was just written counts as old, for git and for us."""
    time.sleep(seconds)


def occupied(folder: Path, parts: Sequence[str]) -> int:
    """Return the bytes on disk of what lies below parts of a folder."""
    return sum(
        path.lstat().st_blocks * 512 for part in parts for path in (folder / part).rglob("*")
    )
