"""A bed whose commands are somebody else's: another uid, gid, groups and umask."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.model.approval import NAMESPACES, Gate
from tests.e2e.described import require_described
from tests.e2e.driver import ROOT, Bed, Done
from tests.e2e.project import make_project


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who somebody is to the kernel.

    Attributes:
        uid: numeric user; it need not be in the host's list of users.
        gid: numeric group.
        groups: supplementary groups; the engine's lets them use it.
        umask: of all that person's commands.
    """

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    umask: int = 0o022

    @property
    def is_listed(self) -> bool:
        """Whether the host's list of users has them; ssh-keygen signs for nobody else."""
        return self.uid in {entry.pw_uid for entry in pwd.getpwall()}


@dataclass(slots=True, kw_only=True)
class Person(Bed):
    """Somebody with a home, a project and a state folder.

    Attributes:
        account: who that is.
    """

    account: Account
    _server: subprocess.Popen[str] | None = field(default=None, repr=False)

    def ask(self, *words: str, **env: str) -> Done:
        """Run one command to its end, whatever that is."""
        return self.ask_in({**self.environment, **env}, *words)

    def ask_in(self, environment: Mapping[str, str], *words: str, kill_at: str = "") -> Done:
        """The same in an environment that is given whole; killed when it prints a text."""
        server = self._server or self._begin()
        assert server.stdin is not None
        assert server.stdout is not None
        streams = {name: str(self.home / f".{name}") for name in ("out", "err")}
        command = {"words": words, "env": environment, "folder": str(self.project), **streams}
        command["kill_at"] = kill_at
        server.stdin.write(f"{json.dumps(command)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(streams[name]).read_bytes() for name in ("out", "err"))
        done = Done(words=words, code=code, raw=out, err=err.decode())
        require_described(words, done.out, done.err)
        return done

    def approve(self, digest: str, gate: Gate) -> None:
        """Approve a hash: by a signature of theirs, or else by one that somebody brings them."""
        if self.account.is_listed:
            self("approve", digest, "--key", str(self.key("ada")))
            return
        statement, signature = self.home / "statement", self.home / "statement.sig"
        self("approve", digest, "--write-statement", str(statement), "--reviewer", "ada")
        words = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACES[gate]]
        with _own(self.key("ada")):
            subprocess.run([*words, "-f", self.key("ada"), statement], check=True)
        give(signature, self.account)
        self("approve", digest, "--statement", str(statement), "--signature", str(signature))
        statement.unlink()
        signature.unlink()

    def _begin(self) -> subprocess.Popen[str]:
        who = self.account
        words = [str(number) for number in (who.uid, who.gid, who.umask, *who.groups)]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.somebody", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._server

    def leave(self) -> None:
        if self._server is not None:
            self._server.communicate(timeout=10)


@contextlib.contextmanager
def person(account: Account, *, engine: str, images_lock: Path | None = None) -> Iterator[Person]:
    """Yield somebody with a fresh project; the home lies where everybody can reach it."""
    home = Path(tempfile.mkdtemp(prefix="harness-person-"))
    made = Person(home=home, engine=engine, account=account)
    try:
        for folder in (made.project, made.state):
            folder.mkdir(mode=0o700)
        if images_lock is not None:
            shutil.copy(images_lock, made.state)
        make_project(made)
        give(home, account)
        yield made
    finally:
        made.leave()
        shutil.rmtree(home)


def give(place: Path, account: Account) -> None:
    """Make somebody the owner of a file, or of a folder and all it holds."""
    for item in (place, *place.rglob("*")):
        os.chown(item, account.uid, account.gid, follow_symlinks=False)


@contextlib.contextmanager
def _own(key: Path) -> Iterator[None]:
    """Take a key for the block: ssh-keygen uses no private key of another user's."""
    found = key.stat()
    os.chown(key, os.geteuid(), os.getegid())
    try:
        yield
    finally:
        os.chown(key, found.st_uid, found.st_gid)
