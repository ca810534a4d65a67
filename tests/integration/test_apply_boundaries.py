"""Borders that only a real system has: mounts, other users' modes, git's own reading."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.errors import ContainmentError
from harness.execution.apply.git_config import config_values
from tests.fakes.apply_case import ApplyCase
from tests.fakes.trees import File

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.root
def test_a_bind_mount_inside_the_project_is_never_written(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    case = ApplyCase(tmp_path)
    changeset = case.prepare({b"d": {b"f": File(b"1")}}, {b"d": {b"f": File(b"2")}})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"1")
    subprocess.run(["mount", "--bind", str(outside), str(case.root / "d")], check=True)
    try:
        with pytest.raises(ContainmentError) as caught:
            case.apply(changeset)
    finally:
        subprocess.run(["umount", str(case.root / "d")], check=True)
    assert [str(issue) for issue in caught.value.issues] == [
        "d/f: can't be reached: d: is on another mount than the project"
    ]
    assert (outside / "f").read_bytes() == b"1"
    assert case.tree() == {b"d": {b"f": File(b"1")}}


UNREADABLE = """
import os, sys
from pathlib import Path
from harness.store.blobs import BlobStore
from tests.fakes.quarantine_case import QuarantineCase

folder = Path(sys.argv[1])
os.seteuid(65534)  # after the imports: the user may not be able to read this interpreter
(folder / "upper" / "d").mkdir(parents=True)
(folder / "upper" / "d" / "f").write_bytes(b"hidden")
(folder / "upper" / "d" / "f").chmod(0)
(folder / "upper" / "d").chmod(0)
imported = QuarantineCase(blobs=BlobStore(folder / "objects"), base={}).run(folder / "upper")
print(os.geteuid(), *(change.path.decode() for change in imported.changeset.changes))
"""


@pytest.mark.root
def test_a_plain_user_imports_what_a_worker_made_unreadable() -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", UNREADABLE, name],
            cwd=PROJECT,
            env={"PATH": os.environ["PATH"]},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["65534", "d", "d/f"]


CONFIGS = [
    "[core]\n\thooksPath = a/b\n",
    '[core]hooksPath="a b"   ; c\n',
    "[CORE]\n  HooksPath=x # y\n[core]\nhookspath = z\n",
    '[core]\nhooksPath = "a\\\\b" c \\"d\n',
    "[core]\nhooksPath = one\\\n two\n",
    "[core]\r\n\thooksPath = crlf\r\n",
    '[core "sub"]\nhooksPath = not-this\n[core]\nbare = true\n',
    "# comment\n; another\n[core]\n\n hooksPath =   spaced   out   \n",
    "[include]\npath = other\n",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_configurations_are_read_as_git_reads_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_bytes(text.encode())
    (tmp_path / "other").write_text("[core]\nhooksPath = included\n")
    done = subprocess.run(
        [
            "git",
            "config",
            "--includes",
            "--file",
            "config",
            "--null",
            "--get-all",
            "core.hooksPath",
        ],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    expected = done.stdout.split("\0")[:-1]
    if "sub" in text:
        assert set(expected) <= {"not-this"}  # we take a subsection's value as well: it is wider
    else:
        assert config_values(tmp_path / "config", "core.hookspath", home="") == expected
