"""Drives the real command line: one project, one state folder, both at paths of their own.

Stations of the main job are made once, in order, and kept: a test begins at the station it needs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cli.main import run_command_line
from harness.flows.session import open_host
from harness.ledger.log import Ledger
from harness.model.entry import Entry
from tests.e2e.described import require_described

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 90

Listing = Mapping[str, tuple[str, int, int, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that ended."""

    words: tuple[str, ...]
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8", "surrogateescape")

    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass(slots=True)
class Bed:
    """A home with one project and one state folder.

    Attributes:
        home: HOME of the commands; holds everything else.
        engine: DOCKER_HOST.
        facts: what the stations made so far: plan, run, diff, undo.
    """

    home: Path
    engine: str
    facts: dict[str, str] = field(default_factory=dict)
    _kept: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.home / "p"

    @property
    def state(self) -> Path:
        return self.home / "s"

    def key(self, name: str) -> Path:
        return self.home / "keys" / name

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "HARNESS_STATE": str(self.state),
            "DOCKER_HOST": self.engine,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONPATH": str(ROOT),
        }

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "harness", *words]

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv(*words),
            cwd=self.project,
            env={**self.environment, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, *words: str, **env: str) -> Done:
        """Run one command to its end, whatever that is."""
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=SECONDS)
        done = Done(words=words, code=process.returncode, raw=out, err=err.decode())
        require_described(words, done.out, done.err)
        return done

    def __call__(self, *words: str, code: int = 0, **env: str) -> Done:
        """Run one command that ends as expected."""
        done = self.ask(*words, **env)
        assert done.code == code, f"{done.words}: {done.code}\n{done.out}\n{done.err}"
        assert "Traceback" not in done.err
        return done

    def here(self, *words: str) -> Done:
        """Run one command in this process, as a second command that needs no process of its own."""
        with borrowed_environment(self.environment, self.project):
            done = run_here(*words)
        require_described(words, done.out, done.err)
        return done

    def to_nobody(self, *words: str) -> tuple[int, bytes]:
        """Run one command whose output nobody reads; return its exit code and its stderr."""
        read, write = os.pipe()
        os.close(read)
        try:
            done = subprocess.run(
                self.argv(*words),
                cwd=self.project,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=write,
                stderr=subprocess.PIPE,
                timeout=SECONDS,
                check=False,
            )
        finally:
            os.close(write)
        return done.returncode, done.stderr

    def git(self, *words: str) -> bytes:
        return git(self.project, *words)

    # ---- what is there ----

    @property
    def ledger(self) -> Ledger:
        return open_host({"HARNESS_STATE": str(self.state)}).ledger

    def entries(self) -> list[Entry]:
        return self.ledger.entries()

    def verbs(self) -> list[str]:
        return [f"{entry.verb}.{entry.phase}" for entry in self.entries()]

    def tree(self) -> Listing:
        """Return the project's files as content, without times: two trees can be compared."""
        return {
            path: (kind, mode, 0, data)
            for path, (kind, mode, _, data) in listing(self.project).items()
            if path.split("/")[0] != ".git"
        }

    # ---- stations ----

    def keep(self, name: str) -> None:
        """Keep everything as it is now, to come back to it."""
        target = self.home / "kept" / name
        target.mkdir(parents=True)
        for part in (self.project, self.state):
            subprocess.run(["cp", "-a", part, target / part.name], check=True)
        self._kept[name] = dict(self.facts)

    def has(self, name: str) -> bool:
        return name in self._kept

    def come_back(self, name: str) -> None:
        """Make everything as it was; the two folders themselves stay the same."""
        for part in (self.project, self.state):
            part.chmod(0o700)
            for item in part.iterdir():
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item)
                else:
                    item.unlink()
            subprocess.run(
                ["cp", "-a", f"{self.home / 'kept' / name / part.name}/.", part], check=True
            )
        self.facts = dict(self._kept[name])


@contextlib.contextmanager
def borrowed_environment(environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Give this process another environment and working directory for the block."""
    earlier = dict(os.environ)
    try:
        os.environ.update(environment)
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(earlier)


def run_here(*words: str) -> Done:
    """Run one command in this process, as `main` does."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = run_command_line(words)
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read())
    return Done(words=words, code=code, raw=texts[0].encode(), err=texts[1])


def git(folder: Path, *words: str) -> bytes:
    """Run git with nobody's configuration."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false")
    return subprocess.run(
        ["git", *settings, *words], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout


def listing(root: Path) -> Listing:
    """Return kind, mode, time and content of everything below a folder, the folder included."""
    found = {"": _look(root)}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            found[os.path.relpath(path, root)] = _look(path)
    return found


def _look(path: Path) -> tuple[str, int, int, bytes]:
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        return "symlink", 0, facts.st_mtime_ns, os.fsencode(path.readlink())
    if stat.S_ISREG(facts.st_mode):
        return "file", stat.S_IMODE(facts.st_mode), facts.st_mtime_ns, path.read_bytes()
    kind = "folder" if stat.S_ISDIR(facts.st_mode) else "other"
    return kind, stat.S_IMODE(facts.st_mode), facts.st_mtime_ns, b""


@contextlib.contextmanager
def untouched(bed: Bed) -> Iterator[None]:
    """Require that the block changes nothing of the project, and that the ledger still holds."""
    before = listing(bed.project)
    yield
    after = listing(bed.project)
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    assert changed == []
    bed.ledger.verify()


def refused(bed: Bed, *words: str, code: int, says: str, **env: str) -> Done:
    """Run a command that must be refused: exit code, message, nothing written anywhere.

    What an error may leave in the state folder is a project's id, nothing else.
    """
    entries = bed.verbs()
    with untouched(bed):
        done = bed(*words, code=code, **env)
    assert says in done.err
    assert done.out == ""
    assert bed.verbs() == entries
    runs = bed.state / "runs"
    assert [item.name for item in runs.iterdir()] == [] if runs.exists() else True
    return done


Station = Callable[[Bed], None]
