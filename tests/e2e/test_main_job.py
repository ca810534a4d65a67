"""The main job through the command line, from seal to undo."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.conftest import At
from tests.e2e.driver import Bed, git, listing, untouched
from tests.e2e.project import FILES, approve, only_operation, run, seal

pytestmark = pytest.mark.docker

CHANGED = {
    "README.md": "modify",
    "app/core.py": "modify",
    "data/blob.bin": "modify",
    "data/crlf.txt": "modify",
    "data/tail.txt": "modify",
    "deep": "add",
    "deep/er": "add",
    "deep/er/new.bin": "add",
    "deep/er/tool": "add",
    "empty.txt": "add",
    "gone": "delete",
    "gone/old.txt": "delete",
    "link": "symlink",
    "nest": "modify",
    "nest/file.txt": "delete",
    "new-name.txt": "add",
    "old-name.txt": "delete",
    "run.sh": "mode",
    "swap": "modify",
    "swap/inner.txt": "add",
}


def test_from_seal_to_undo_and_back_again(bed: Bed) -> None:
    base = bed.tree()

    with untouched(bed):
        plan = seal(bed, "change")
        shown = bed("plan", "show", plan).out
        assert plan in shown
        assert "1. python3 tool.py change" in shown
        assert "waiting for approval" in shown
        approve(bed, plan)
        diff = run(bed, plan)

        stat = bed("diff", bed.facts["run"], "--stat").out
        assert diff in stat
        assert "  D gone/old.txt" in stat
        body = bed("diff", diff[7:19], "--json").json()
        changes = {item["path"]: item["op"] for item in body["changes"] if "path" in item}
        assert changes == CHANGED
        assert [item["path_b64"] for item in body["changes"] if "path" not in item] == [
            "bmHvdmUudHh0"
        ]
        aside = {item["path"] for item in body["byProducts"]["items"]}
        assert {"note.log", "__pycache__"} <= {path.split("/")[0] for path in aside}
        patch = bed("diff", bed.facts["run"], "--patch").raw
        approve(bed, diff)

    applied = bed("apply", diff)
    assert f"{len(CHANGED) + 1} changed paths" in applied.out
    assert (bed.project / "note.log").read_bytes() == FILES["note.log"]
    assert not (bed.project / "__pycache__").exists()
    _agrees_with_git(bed, patch)

    undo = bed("undo", diff, "--json").json()["diff"]
    approve(bed, undo)
    bed("apply", undo)
    assert bed.tree() == base
    assert bed.git("status", "--porcelain") == b""

    again = bed("undo", undo, "--json").json()["diff"]
    assert again == diff, "the reverse of the reverse is the diff itself, with a nonce of its own"
    approve(bed, again)
    bed("apply", again)
    _agrees_with_git(bed, patch)
    assert bed("ledger", "verify").out.startswith(f"ledger ok: {len(bed.entries())} entries")
    assert bed.verbs() == [
        *("seal.done", "approve.done", "run.intent", "quarantine.done", "run.done"),
        *("approve.done", "apply.intent", "apply.done"),
        *("undo.done", "approve.done", "apply.intent", "apply.done") * 2,
    ]


def _agrees_with_git(bed: Bed, patch: bytes) -> None:
    """Require that git sees the patch in the project, and makes the same tree of it elsewhere."""
    bed.git("add", "--all")
    words = ("diff", "--cached", "--binary", "--full-index", "--no-renames", "--no-color")
    assert bed.git(*words) == patch
    bed.git("reset", "-q")
    copy = bed.home / "copy"
    git(bed.home, "clone", "-q", str(bed.project), str(copy))
    (bed.home / "patch").write_bytes(patch)
    git(copy, "apply", "--check", str(bed.home / "patch"))
    git(copy, "apply", str(bed.home / "patch"))
    assert _files(copy) == _files(bed.project)
    for part in ("copy", "patch"):
        os.system(f"rm -rf {bed.home / part}")  # noqa: S605 - a path of ours


def _files(root: Path) -> dict[str, tuple[str, int, bytes]]:
    return {
        path: (kind, mode & 0o100, data)
        for path, (kind, mode, _, data) in listing(root).items()
        if path.split("/")[0] != ".git" and kind != "folder"
    }


def test_a_test_run_counts_its_checks_and_keeps_its_report(bed: Bed) -> None:
    plan = seal(bed, "test")
    ran = only_operation(bed("run", plan, "--key", str(bed.key("ada")), "--json").json())

    assert ran["outcome"]["kind"] == "passed"
    assert ran["checks"] == {"run": 2, "passed": 2, "failed": 0, "skipped": 0}
    (report,) = ran["artifacts"]
    assert (report["name"], report["path"]) == ("results", "out/junit.xml")
    assert ran["changes"] == 0
    assert ran["missing"] == []
    shown = bed("runs", "show", ran["run"]).out
    assert "2 ran: 2 passed, 0 failed; 0 skipped" in shown
    assert "2 passed" in bed("runs", "logs", ran["run"]).out


def test_a_failing_test_is_an_outcome_with_its_counts(bed: Bed) -> None:
    core = bed.project / "app" / "core.py"
    core.write_text("def answer():\n    return 40\n")
    done = bed("run", seal(bed, "test"), "--key", str(bed.key("ada")), "--json", code=1)

    ended = only_operation(done.json())
    assert ended["outcome"]["text"] == "failed(1)"
    assert ended["checks"] == {"run": 2, "passed": 1, "failed": 1, "skipped": 0}


def test_a_run_that_checked_nothing_does_not_pass(bed: Bed) -> None:
    for suite in (bed.project / "tests").iterdir():
        suite.unlink()
    (bed.project / "tests" / "conftest.py").write_text(
        "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    )
    done = bed("run", seal(bed, "test"), "--key", str(bed.key("ada")), "--json", code=1)
    assert only_operation(done.json())["outcome"]["text"] == "failed(nothing was checked)"


def test_an_empty_diff_is_a_clean_no_op_that_says_so(bed: Bed) -> None:
    plan = seal(bed, "nothing")
    ran = bed("run", plan, "--key", str(bed.key("ada")))
    assert "nothing that could land changed" in ran.out
    diff = bed("runs", "list", "--json").json()[-1]["operations"][0]["diff"]
    with untouched(bed):
        approve(bed, diff)
        assert bed("apply", diff).out == "the diff is empty: nothing was written\n"
    assert bed.entries()[-1].body["result"] == "empty"
    assert bed("diff", ran.out.split()[1].rstrip(":"), "--patch").raw == b""


def test_a_build_that_fails_keeps_its_diff_for_looking_only(bed: Bed) -> None:
    with untouched(bed):
        done = bed("run", seal(bed, "fail"), "--key", str(bed.key("ada")), "--json", code=1)
        ended = only_operation(done.json())
        assert ended["outcome"]["text"] == "failed(3)"
        assert ended["changes"] == 1
        assert "+# From a run that failed" in bed("diff", ended["run"]).out


def test_the_exit_code_is_the_verdict_even_when_nobody_reads(bed: Bed) -> None:
    for recipe, code in (("fail", 1), ("noisy", 0)):
        plan = seal(bed, recipe)
        approve(bed, plan)
        assert bed.to_nobody("run", plan) == (code, b"")
    failed, passed = bed("runs", "list", "--json").json()
    assert (failed["kind"], passed["kind"]) == ("failed", "passed")
    patch = ("diff", failed["run"], "--patch")
    assert bed.to_nobody(*patch) == (0, b"")


def test_every_read_command_has_json(at: At) -> None:
    bed = at("applied")
    run_id, plan = bed.facts["run"], bed.facts["plan"]
    for words in (
        ("recipe", "list"),
        ("recipe", "show", "change"),
        ("recipe", "check"),
        ("plan", "list"),
        ("plan", "show", plan[7:19]),
        ("diff", run_id),
        ("runs", "list"),
        ("runs", "show", run_id),
        ("ledger", "list"),
        ("ledger", "show", "0"),
        ("ledger", "verify"),
        ("image", "list"),
        ("setup", "--check"),
    ):
        with untouched(bed):
            assert bed(*words, "--json").json()


def test_new_files_get_the_callers_umask_and_owner(at: At) -> None:
    bed = at("diff approved")
    private = bed.project / "README.md"
    private.chmod(0o600)
    earlier = os.umask(0o027)
    try:
        bed("apply", bed.facts["diff"])
    finally:
        os.umask(earlier)
    assert _mode(bed.project / "deep" / "new.txt") == 0o640
    assert _mode(bed.project / "deep" / "tool") == 0o750
    assert _mode(bed.project / "deep") == 0o750
    assert _mode(private) == 0o600, "a private file stays private"
    assert {item.lstat().st_uid for item in bed.project.rglob("*")} == {os.geteuid()}


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777
