"""The project that the end-to-end tests work on, and the stations of the main job on it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.model.approval import NAMESPACES
from tests.e2e.driver import Bed, git

BOTH = ",".join(NAMESPACES.values())
PLAN_ONLY = NAMESPACES["plan"]
LISTED = {"ada": BOTH, "bob": BOTH, "cy": PLAN_ONLY}
"""Reviewers and what their keys are good for; `eve` has a key and is not listed."""

TOOL = '''\
"""What the recipes run."""

import os
import sys
import time
from pathlib import Path


def change():
    Path("README.md").write_text("# Changed\\n")
    Path("app/core.py").write_text("def answer():\\n    return 42\\n")
    Path("data/crlf.txt").write_bytes(b"one\\r\\nthree\\r\\n")
    Path("data/tail.txt").write_bytes(b"still no newline")
    Path("data/blob.bin").write_bytes(bytes(range(255, -1, -1)))
    Path("gone/old.txt").unlink()
    Path("gone").rmdir()
    Path("old-name.txt").rename("new-name.txt")
    Path("run.sh").chmod(0o755)
    Path("swap").unlink()
    Path("swap").mkdir()
    Path("swap/inner.txt").write_text("file became folder\\n")
    Path("nest/file.txt").unlink()
    Path("nest").rmdir()
    Path("nest").write_text("folder became file\\n")
    Path("link").unlink()
    Path("link").symlink_to("app/core.py")
    Path("deep/er").mkdir(parents=True)
    Path("deep/er/new.bin").write_bytes(b"\\0\\1\\2" * 100)
    Path("deep/er/tool").write_text("#!/bin/sh\\n")
    Path("deep/er/tool").chmod(0o755)
    Path("empty.txt").touch()
    Path(os.fsdecode(b"na\\xefve.txt")).write_text("a name that is not UTF-8\\n")
    Path("note.log").write_text("outside the writable paths\\n")
    Path("__pycache__").mkdir()
    Path("__pycache__/tool.pyc").write_bytes(b"by-product")


def few():
    Path("README.md").write_text("# Changed\\n")
    Path("deep").mkdir()
    Path("deep/new.txt").write_text("new\\n")
    Path("deep/tool").write_text("#!/bin/sh\\n")
    Path("deep/tool").chmod(0o755)
    Path("gone/old.txt").unlink()
    Path("gone").rmdir()
    Path("__pycache__").mkdir()
    Path("__pycache__/tool.pyc").write_bytes(b"by-product")


def nothing():
    Path("README.md").write_bytes(Path("README.md").read_bytes())


def fail():
    Path("README.md").write_text("# From a run that failed\\n")
    sys.exit(3)


def slow():
    print("begun", flush=True)
    time.sleep(60)


def noisy():
    sys.stdout.write("\\x1b[2J\\x1b]0;owned\\x07\\u202eback\\n")
    sys.stderr.write("\\x1b[31mred\\x1b[0m\\n")


globals()[sys.argv[1]]()
'''

FILES: Mapping[str, bytes] = {
    "tool.py": TOOL.encode(),
    "README.md": b"# Sample\n",
    "app/__init__.py": b"",
    "app/core.py": b"def answer():\n    return 41\n",
    "tests/test_app.py": b"from app.core import answer\n\n\ndef test_answer():\n"
    b"    assert answer() == 41\n\n\ndef test_type():\n    assert isinstance(answer(), int)\n",
    "data/crlf.txt": b"one\r\ntwo\r\n",
    "data/tail.txt": b"no newline",
    "data/blob.bin": bytes(range(256)),
    "gone/old.txt": b"old\n",
    "old-name.txt": b"renamed\n",
    "run.sh": b"#!/bin/sh\n",
    "swap": b"a file\n",
    "nest/file.txt": b"in a folder\n",
    "note.log": b"a log\n",
}

WRITABLE = (
    'writable: ["*.md", "*.py", /data/, /gone/, "*-name.txt", /run.sh, /swap, /nest, /link, '
    "/deep/, /empty.txt, /na*]\n"
)

POLICY = """\
version: 1
isolation:
  limits: { cpus: 1, memory: 512MiB, wall: 1m, output: 8MiB }
approval: { plan: 1, diff: 1, valid_for: VALID, reviewers: reviewers }
"""


def recipe(deed: str, *, kind: str = "build", policy: str = "default", more: str = "") -> str:
    return (
        f"version: 1\nkind: {kind}\ndescription: Do {deed}.\nimage: python\npolicy: {policy}\n"
        f"steps:\n  - run: [python3, tool.py, {deed}]\n{more}"
    )


RECIPES: Mapping[str, str] = {
    "change": recipe("change", more=WRITABLE),
    "few": recipe("few", more=WRITABLE),
    "nothing": recipe("nothing", more=WRITABLE),
    "fail": recipe("fail", more=WRITABLE),
    "slow": recipe("slow"),
    "noisy": recipe("noisy"),
    "brief": recipe("few", policy="brief", more=WRITABLE),
    "test": "version: 1\nkind: test\ndescription: Test.\nimage: python\nsteps:\n"
    "  - run: [python3, -m, pytest, -q, -p, no:cacheprovider, --junitxml=out/junit.xml, tests]\n"
    "outputs:\n  - { name: results, path: out/junit.xml, report: junit }\n"
    "env: { PYTHONPATH: /workspace }\n",
}


def make_project(bed: Bed) -> None:
    """Write the project, with git, recipes, policies and reviewers; make the keys."""
    root = bed.project
    (bed.home / "keys").mkdir()
    for name in (*LISTED, "eve"):
        _make_key(bed.key(name))
    for path, data in FILES.items():
        write(root / path, data)
    (root / "link").symlink_to("README.md")
    for name, text in RECIPES.items():
        write(root / "recipes" / f"{name}.yaml", text.encode())
    write(root / "policies" / "default.yaml", POLICY.replace("VALID", "1h").encode())
    write(root / "policies" / "brief.yaml", POLICY.replace("VALID", "50ms").encode())
    write(root / "policies" / "reviewers", reviewers(bed, LISTED).encode())
    write(root / "harness.yaml", b"version: 1\nname: sample\n")
    git(root, "init", "-q", "--initial-branch=main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")


def reviewers(bed: Bed, listed: Mapping[str, str]) -> str:
    lines = []
    for name, namespaces in listed.items():
        kind, key, *_ = bed.key(name).with_suffix(".pub").read_text().split()
        lines.append(f'{name} namespaces="{namespaces}" {kind} {key}\n')
    return "".join(lines)


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _make_key(path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", path], check=True
    )


# ---- stations: each begins where the one before it ended ----


def seal(bed: Bed, name: str = "few") -> str:
    """Seal a recipe and return the plan hash."""
    bed.facts["plan"] = plan = str(bed("seal", name, "--json").json()["plan"])
    return plan


def approve(bed: Bed, digest: str, key: str = "ada") -> None:
    bed("approve", digest, "--key", str(bed.key(key)))


def only_operation(ran: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one operation of a run's JSON, its record beside it."""
    (operation,) = ran["operations"]
    return {**(operation["record"] or {}), **operation, "run": ran["run"]}


def run(bed: Bed, plan: str, *, code: int = 0) -> str:
    """Run an approved plan and return the diff hash."""
    ran = only_operation(bed("run", plan, "--json", code=code).json())
    bed.facts.update(run=ran["run"], diff=ran["diff"])
    return str(ran["diff"])


STATIONS: Mapping[str, Callable[[Bed], object]] = {
    "begun": lambda bed: bed("recipe", "check"),
    "sealed": seal,
    "plan approved": lambda bed: approve(bed, bed.facts["plan"]),
    "ran": lambda bed: run(bed, bed.facts["plan"]),
    "diff approved": lambda bed: approve(bed, bed.facts["diff"]),
    "applied": lambda bed: bed("apply", bed.facts["diff"]),
}


def bring_to(bed: Bed, station: str) -> None:
    """Bring a bed to a station, by way of the stations before it when it was never there."""
    reached = ""
    for name, step in STATIONS.items():
        if not bed.has(name):
            if reached:
                bed.come_back(reached)
            step(bed)
            bed.keep(name)
        reached = name
        if name == station:
            break
    bed.come_back(station)
