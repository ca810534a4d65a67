"""The shipped man pages, read by the programs that people read them with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli.manual.pages import PAGES

PAGES_FOLDER = Path(__file__).resolve().parents[2] / "docs" / "man"
WORDS = {
    "man": ["man", "--warnings", "--local-file"],
    "mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
}


@pytest.mark.parametrize("program", ["man", "mandoc"])
def test_the_man_pages_are_well_formed(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    pages = sorted(PAGES_FOLDER.glob("*.1"))
    assert len(pages) == len(PAGES)
    done = subprocess.run(
        [*WORDS[program], *pages], capture_output=True, text=True, timeout=120, check=False
    )
    said = done.stderr if program == "man" else done.stdout
    assert [line for line in said.splitlines() if "missing date" not in line] == []
