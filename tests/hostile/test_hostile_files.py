"""What a worker leaves in its workspace: nothing of it harms who reads, shows or lands it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.driver import refused
from tests.hostile.conftest import Arena

pytestmark = pytest.mark.docker

EVERYTHING = r"""
import os, socket
os.mkdir("n")
os.symlink("/etc/passwd", "n/abs")
os.symlink("../../../etc", "n/up")
os.symlink(".git/hooks", "n-hooks")
os.link("attack.py", "n/hard")
os.mkfifo("n/fifo")
socket.socket(socket.AF_UNIX).bind("n/sock")
open("n/suid", "w").close()
os.chmod("n/suid", 0o6755)
open("n/closed", "w").close()
os.chmod("n/closed", 0)
for name in (b"new\nline", b"\x1b[31mred\x1b]0;x\x07", b"\xff", b"a" * 255, b"README", b"readme",
             "caf\u00e9".encode(), "cafe\u0301".encode(), "\u202etxt".encode()):
    open(b"n/" + name, "w").write("1")
for name in (".git", ".GIT", "data/.git", ".git ", "GIT~1", ".gi\u200ct"):
    os.makedirs(name)
    open(name + "/config", "w").write("[core]\nfsmonitor=touch /tmp/owned\n")
os.makedirs("m0")
open("m0/f", "w").write("x")
os.chmod("m0", 0)
os.makedirs("d" + "/d" * 300)
"""


def test_everything_a_worker_can_leave_is_named_and_none_of_it_lands(arena: Arena) -> None:
    left = arena.attack(EVERYTHING)
    obstacles, flags = left.reasons("obstacles"), left.reasons("flags")
    assert set(obstacles) >= {
        "n/abs",
        "n/up",
        "n-hooks",
        "n/new\nline",
        "n/\x1b[31mred\x1b]0;x\x07",
        "n/README",
        "n/readme",
        "n/caf\u00e9",
        "n/cafe\u0301",
    }
    assert flags["n/suid"] == ["mode bits 6000 are dropped"]
    assert "hard link" in flags["n/hard"][0]
    dropped = left.by_products
    assert {path for path, reason in dropped.items() if reason == "git"} >= {
        ".git",
        ".GIT",
        "data/.git",
        ".git ",
        "GIT~1",
        ".gi\u200ct",
    }
    assert dropped["n/fifo"] == dropped["n/sock"] == "not-importable"
    key = ("--key", str(arena.bed.key("ada")))
    refused(arena.bed, "approve", left.run["diff"], *key, code=5, says="may not land")
    refused(arena.bed, "apply", left.run["diff"], code=5, says="may not land")


def test_what_is_shown_cannot_drive_a_terminal(arena: Arena) -> None:
    text = "a\\rb\\x1b[2K\\x1b[1A\\u202ec\\n--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-x\\n+y\\n"
    left = arena.attack(
        f'open("\\x1b[31mred", "w").write("{text}")\n'
        f'print("{text}")\n'
        'open(".gitattributes", "w").write("* -diff\\n*.py binary\\n")\n'
        'open("attack.py", "a").write("# evil\\n")\n'
    )
    run = left.run["run"]
    for words in (("diff", run), ("diff", run, "--stat"), ("runs", "logs", run), ("runs", "list")):
        done = arena.bed(*words)
        assert not {"\x1b", "\r", "\u202e"} & set(done.out + done.err), words
    assert "+# evil" in arena.bed("diff", run).out, ".gitattributes must not hide a change"


@pytest.mark.parametrize("name", ["user.overlay.metacopy", "user.overlay.redirect"])
def test_marks_of_the_overlay_that_a_worker_forged_are_refused(arena: Arena, name: str) -> None:
    (arena.project / "attack.py").write_text(
        f'import os\nos.setxattr("data/old.txt", {name!r}, b"/etc/passwd")\n'
    )
    plan = arena.bed("seal", "build", "--json").json()["plan"]
    key = str(arena.bed.key("ada"))
    done = arena.bed("run", plan, "--key", key, code=5)
    assert "data/old.txt" in done.err
    assert "infra-failure" in arena.bed("runs", "list").out


def test_a_folder_that_became_a_link_takes_nothing_along(arena: Arena, tmp_path: Path) -> None:
    left = arena.attack(
        "import os, shutil\n"
        'shutil.rmtree("swap"); os.symlink("data", "swap")\n'
        'open("swap/new.txt", "w").write("through the link\\n")\n'
    )
    ops = {change["path"]: change["op"] for change in left.diff["changes"]}
    assert ops == {"swap": "symlink", "swap/a.txt": "delete", "data/new.txt": "add"}
    bed, diff = arena.bed, left.run["diff"]
    bed("approve", diff, "--key", str(bed.key("ada")))
    outside = tmp_path / "outside"
    outside.mkdir()
    (arena.project / "data").rename(tmp_path / "data")
    (arena.project / "data").symlink_to(outside)
    refused(bed, "apply", diff, code=5, says="data: expected a folder, got a symlink")
    assert list(outside.iterdir()) == []


def test_a_change_of_what_governs_the_project_is_flagged(arena: Arena) -> None:
    left = arena.attack(
        'open("policies/reviewers", "a").write("# mallory\\n")\n'
        'open("recipes/more.yaml", "w").write("version: 1\\n")\n'
        'open("harness.yaml", "a").write("# x\\n")\n'
        'open("data/new.txt", "w").write("x\\n")\n'
    )
    flags = left.reasons("flags")
    assert flags["policies/reviewers"] == ["decides who may approve, and what a worker gets"]
    assert flags["recipes/more.yaml"] == ["decides what later runs execute"]
    assert "harness.yaml" in flags
    assert "data/new.txt" not in flags
    assert "look at: policies/reviewers: decides who" in arena.bed("diff", left.run["run"]).out


def test_empty_files_without_end_are_a_disk_limit(arena: Arena) -> None:
    """16 MiB are 4,096 names: neither the disk's inodes nor the importer can be worn out."""
    left = arena.attack(
        'for number in range(200_000):\n    open(f"f{number}", "w").close()\n', code=1
    )
    assert left.outcome == "disk-limit"


def test_the_host_keeps_what_a_worker_hid_from_itself(arena: Arena) -> None:
    """A folder of mode 0 is read all the same, by the owner and by root."""
    left = arena.attack(
        'import os\nos.mkdir("m0"); open("m0/f", "w").write("x"); os.chmod("m0", 0)'
    )
    assert {change["path"] for change in left.diff["changes"]} == {"m0", "m0/f"}
