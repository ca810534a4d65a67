"""Every command that README and the tutorial show is run, in the order in which it is shown.

Blocks marked `console` hold commands after `$ `. PLAN, DIFF, UNDO and RUN stand for the newest
full hashes and run id, KEY for an SSH key. `make` targets are what CI itself runs; they are only
looked up in the Makefile here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/tutorial/first-sealed-run.md",
    "docs/how-to/in-ci.md",
    "docs/how-to/approve-with-an-agent-key.md",
)
BEFORE = {
    "docs/how-to/approve-with-an-agent-key.md": ("harness init . --key KEY.pub --reviewer alice",),
    "docs/how-to/in-ci.md": (
        "harness init . --key KEY.pub --reviewer alice",
        "printf 'def test_nothing():\\n    assert True\\n' > test_a.py",
        f"cp '{ROOT}/docs/examples/ci_job.sh' .",
    ),
}
"""What a page takes for granted: a project, say."""

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(page: str) -> list[str]:
    blocks = _BLOCK.findall((ROOT / page).read_text("utf-8"))
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


class Reader:
    """A person who follows a page in an empty folder."""

    def __init__(self, home: Path, images_lock: Path, engine: str) -> None:
        self.folder = home / "project"
        self.key = home / "key"
        programs = home / "bin"
        for made in (self.folder, programs, home / "state"):
            made.mkdir(mode=0o700)
        shutil.copy(images_lock, home / "state")
        program = programs / "harness"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n', "utf-8")
        program.chmod(0o755)
        self.environment = {
            **os.environ,
            "HARNESS_STATE": str(home / "state"),
            "DOCKER_HOST": engine,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        self.shell(f"ssh-keygen -q -t ed25519 -N '' -f {self.key}")

    def shell(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def follow(self, command: str) -> str:
        filled = command.replace("KEY", str(self.key))
        for word, listing, member in (
            ("PLAN", "plan list", "plan"),
            ("RUN", "runs list", "run"),
        ):
            if re.search(rf"\b{word}\b", filled):
                newest = json.loads(self.shell(f"harness {listing} --json"))[-1]
                filled = re.sub(rf"\b{word}\b", newest[member], filled)
        for word, verb in (("DIFF", "quarantine"), ("UNDO", "undo")):
            if re.search(rf"\b{word}\b", filled):
                filled = re.sub(rf"\b{word}\b", self.newest_diff(verb), filled)
        return self.shell(filled)

    def newest_diff(self, verb: str) -> str:
        entries = json.loads(self.shell("harness ledger list --json"))
        return str([e["body"]["diff"] for e in entries if e["verb"] == verb][-1])


@pytest.mark.docker
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_a_reader_can_follow_the_page(
    page: str, tmp_path: Path, images_lock: Path, engine_url: str
) -> None:
    reader = Reader(tmp_path, images_lock, engine_url)
    reader.shell("git init --quiet . && mkdir -p src")
    (reader.folder / "src" / "a.py").write_text('x = {  "a":1 }\n', "utf-8")
    for command in BEFORE.get(page, ()):
        reader.follow(command)
    targets = (ROOT / "Makefile").read_text("utf-8")
    followed = 0
    for command in commands_of(page):
        if command.startswith("make "):
            assert re.search(rf"^{command.split()[1]}:", targets, re.MULTILINE), command
        else:
            reader.follow(command)
            followed += 1
    assert followed or page == "CONTRIBUTING.md"


def test_the_commands_of_the_pages_are_found() -> None:
    assert sum(len(commands_of(page)) for page in PAGES) > 25
