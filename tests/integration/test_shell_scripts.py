"""The completion scripts in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "Print the JSON Schema"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a project and the program `harness`."""
    folder = tmp_path_factory.mktemp("shells")
    (folder / "harness.yaml").write_text("version: 1\nname: p\n")
    (folder / "recipes").mkdir()
    for name in ("format", "test", "tidy"):
        (folder / "recipes" / f"{name}.yaml").touch()
    program = folder / "bin" / "harness"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    program.chmod(0o755)
    return folder


def ask(folder: Path, shell: str, script: str, *options: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [program, *options, "-c", script],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "HARNESS_STATE": str(folder / "state"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


BASH = """
eval "$(harness completion bash)"
complete -p harness
for COMP_LINE in "harness sch" "harness seal t" "harness seal test t" "harness completion "; do
    COMP_POINT=${#COMP_LINE}
    _harness_completion harness
    echo "$COMP_LINE: ${COMPREPLY[*]}"
done
unset COMP_LINE COMP_POINT
COMP_WORDS=(harness recipe show f) COMP_CWORD=3
_harness_completion harness
echo "${COMPREPLY[*]}"
"""


def test_bash_completes(folder: Path) -> None:
    assert ask(folder, "bash", BASH, "--norc") == [
        "complete -o nosort -F _harness_completion harness",
        "harness sch: schema",
        "harness seal t: test tidy",
        "harness seal test t: tidy",
        "harness completion : bash zsh fish",
        "format",
    ]
    assert not (folder / "state").exists()


ZSH = """
compdef() { print -r -- "compdef $*" }
_describe() { print -rl -- ${(P)3} }
compadd() { local name=${@[-1]}; print -rl -- "${(@P)name}" }
eval "$(harness completion zsh)"
words=(harness sch) CURRENT=2
_harness_completion
words=(harness seal t) CURRENT=3
_harness_completion
"""


def test_zsh_completes(folder: Path) -> None:
    found = ask(folder, "zsh", ZSH, "-f")
    assert found[0] == "compdef _harness_completion harness"
    assert found[1].startswith(f"schema:{NAME}")
    assert found[2:] == ["test", "tidy"]


def test_fish_completes(folder: Path) -> None:
    found = ask(
        folder,
        "fish",
        "harness completion fish | source\n"
        'complete --do-complete "harness sch"\ncomplete --do-complete "harness seal t"',
        "--no-config",
    )
    assert found[0].startswith(f"schema\t{NAME}")
    assert found[1:] == ["test", "tidy"]
