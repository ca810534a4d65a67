"""A process that becomes somebody else and then does that person's commands, one child for each.

Everything is imported while it is still root: the checkout or the interpreter may lie where that
person can't look. What follows is theirs alone: uid, gid, groups, umask, environment.

It reads one JSON line a command: `words`, `env`, `folder`, `out`, `err` (files for the two
streams), and `kill_at`: a text of the first stream at which the command gets SIGKILL, or nothing.
It answers each with the exit code, negative for a signal.
"""

from __future__ import annotations

import contextlib
import encodings
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import harness
from harness.cli.main import run_command_line

KILL_SECONDS = 30


def import_all() -> None:
    """Import the harness and every codec: Python imports those when they are first used."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        importlib.import_module(module.name)
    for module in pkgutil.iter_modules(encodings.__path__, "encodings."):
        with contextlib.suppress(ImportError):  # some are there on other systems only
            importlib.import_module(module.name)


def become(uid: int, gid: int, groups: list[int], umask: int) -> None:
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.umask(umask)


def obey(command: dict[str, Any]) -> int:
    """Do one command in a child of this process and return its exit code."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = [os.open(command[name], flags, 0o600) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, stream in enumerate(streams, 1):
                os.dup2(stream, number)
            os.environ.clear()
            os.environ.update(command["env"])
            os.chdir(command["folder"])
            code = run_command_line(command["words"])
            sys.stderr.flush()
        finally:
            os._exit(code)
    for stream in streams:
        os.close(stream)
    if command["kill_at"]:
        kill_at(command["kill_at"], Path(command["out"]), child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(text: str, stream: Path, child: int) -> None:
    until = time.monotonic() + KILL_SECONDS
    while text not in stream.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)


def main() -> None:
    uid, gid, umask, *groups = (int(word) for word in sys.argv[1:])
    import_all()
    become(uid, gid, groups, umask)
    for line in sys.stdin:
        sys.stdout.write(f"{obey(json.loads(line))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
