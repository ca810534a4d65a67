"""Every example of the manual works as it is printed, in the order in which one would need them.

PLAN and DIFF stand for the newest full hashes, RUN for the newest run id, KEY for an SSH key.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.cli.manual.pages import PAGES
from tests.e2e.driver import Bed, borrowed_environment, git

STORY = """
harness setup --check
harness init --key KEY.pub --reviewer me
harness help runs list
harness schema recipe > recipe.json
harness schema runs list
eval "$(harness completion bash)"
harness image list
harness recipe list
harness recipe show format
harness recipe check
harness recipe check format --json
harness recipe check test --explain
harness seal test -p paths=tests --why 'before merge'
harness seal format
harness plan list
harness plan show PLAN
harness approve PLAN --reviewer me --write-statement statement.json
harness ledger object PLAN | sha256sum
harness approve PLAN --key KEY
harness run PLAN
harness runs list
harness runs show RUN
harness runs logs RUN
harness runs logs RUN --stderr
harness artifacts list RUN
harness diff RUN
harness diff RUN --patch | git apply --check
harness approve DIFF --key KEY
harness apply DIFF
harness undo DIFF
harness reject DIFF --key KEY --comment 'not now'
harness seal format
harness run PLAN --key KEY
harness ledger list -n 10
harness ledger show 0
harness ledger verify
harness project list
harness key show
harness key rotate
harness state backup state.tar
harness state backup with-key.tar --with-key
"""

ELSEWHERE = {
    "harness setup --yes": "the lane begins with it",
    "harness demo --yes": "CI runs it as a command of its own",
    "harness image build python": "the lane begins with it",
    "harness image build python --fresh": "the tests of images, which take minutes",
    "harness image add node node:20": "the tests of images",
    "harness image add node registry.example:5000/node:20": "the tests of images",
    "harness image add app ./all.tar --image app:2": "the tests of images",
    "harness image verify node --source": "the tests of images",
    "harness image verify python": "the tests of images, which take seconds",
    "harness project move /old/place": "the tests of keeping house",
    "harness project add": "the tests of keeping house",
    "harness key renew --lost": "the tests of keeping house",
    "harness state restore state.tar": "the tests of keeping house",
    "harness state restore state.tar --checkpoint kept": "the tests of keeping house",
    "harness ledger verify --checkpoint kept": "the tests of keeping house",
    "harness runs cancel RUN": "the tests of live runs",
    "harness artifacts get RUN results -o junit.xml": "the tests of grown recipes",
    "harness artifacts get RUN results | sha256sum": "the tests of grown recipes",
    "harness completion fish > ~/.config/fish/completions/harness.fish": "the tests of scripts",
}
"""Examples that are not run here, and what runs them."""


class Newest:
    """Fills in what an example leaves open."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def fill(self, line: str) -> str:
        words: dict[str, Callable[[], str]] = {
            "KEY": lambda: str(self.bed.key("me")),
            "PLAN": lambda: harness.open_project().plans()[-1].hash,
            "RUN": lambda: harness.open_project().runs()[-1].id,
            "DIFF": self.diff,
        }
        return re.sub(r"\b(?:KEY|PLAN|RUN|DIFF)\b", lambda found: words[found[0]](), line)

    def diff(self) -> str:
        made = [entry for entry in self.bed.entries() if entry.verb in ("quarantine", "undo")]
        return str(made[-1].body["diff"])


@pytest.mark.docker
def test_the_examples_work(tmp_path: Path, images_lock: Path, engine_url: str) -> None:
    bed = Bed(home=tmp_path, engine=engine_url)
    for folder in (bed.project, bed.state, tmp_path / "keys", tmp_path / "bin"):
        folder.mkdir(mode=0o700)
    shutil.copy(images_lock, bed.state)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", bed.key("me")], check=True)
    program = tmp_path / "bin" / "harness"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    program.chmod(0o755)
    git(bed.project, "init", "-q")
    (bed.project / "a.py").write_text('x = {  "a":1 }\n')
    (bed.project / "tests").mkdir()
    newest = Newest(bed)
    for line in STORY.strip().splitlines():
        with borrowed_environment(bed.environment, bed.project):
            filled = newest.fill(line)
        if re.search(r"[|>$]", line):
            shell(bed, filled)
        else:
            done = bed.here(*shlex.split(filled)[1:])
            assert done.code == 0, f"{line}\n{done.err}"
    assert (bed.project / "a.py").read_text() == 'x = {"a": 1}\n'


def shell(bed: Bed, line: str) -> None:
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line],
        cwd=bed.project,
        env={**bed.environment, "PATH": f"{bed.home / 'bin'}:{bed.environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_every_example_is_run_or_has_a_reason() -> None:
    examples = {line for page in PAGES.values() for _, line in page.examples}
    assert examples - set(STORY.splitlines()) == set(ELSEWHERE)
