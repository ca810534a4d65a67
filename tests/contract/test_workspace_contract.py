"""The two workspace strategies: what a worker finds, what comes back, how it ends, is the same.

Every test runs on the overlay, on a copy, on a copy because the state folder lies on an overlay,
and on a copy over TCP with TLS to a second engine. What differs is named at the end.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path

import pytest

from harness.execution.quarantine.import_changes import Imported, import_changes
from harness.execution.quarantine.rules import ImportRules
from harness.execution.snapshot.ignore import IgnoreRules
from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.strategy import ON_OVERLAY, REMOTE, SEEN
from harness.model.digest import digest_of
from harness.model.limits import MIB
from harness.model.recipe import Output
from harness.model.relpath import show
from harness.store.state import StateFolder
from tests.fakes.bench import SMALL, Bench, Ran

REASONS = {
    "overlay": ("overlay", SEEN, "upper layer"),
    "copy": ("copy", "the recipe asks for it", "volume"),
    "copy-on-overlay": ("copy", ON_OVERLAY, "volume"),
    "copy-over-tls": ("copy", REMOTE, "volume"),
}

LIST = """
import json, os
def look(top=b'.'):
    for folder, folders, files in os.walk(top):
        for name in [b'.'] * (folder == top) + folders + files:
            path = os.path.join(folder, name)
            found = os.lstat(path)
            yield os.fsdecode(os.path.relpath(path, top)), [
                oct(found.st_mode), int(found.st_mtime),
                [found.st_uid, found.st_gid] == [os.getuid(), os.getgid()],
                os.readlink(path).decode() if os.path.islink(path) else '',
            ]
print(json.dumps(dict(look()), sort_keys=True))
"""

WORK = """
import os, pathlib, shutil
def put(path, data=b'new\\n', mode=None):
    os.makedirs(os.path.dirname(path) or b'.', exist_ok=True)
    with open(path, 'wb') as stream:
        stream.write(data)
    if mode is not None:
        os.chmod(path, mode)
os.umask(0o022)
put(b'new.txt'); put(b'new/deep/er/file'); os.makedirs('new/empty'); put(b'new/runs', b'x', 0o755)
put(b'src/a.py', b'a = 2\\n'); put(b'src/same.py', b'same = 1\\n'); os.utime('src/touched.py')
with open('big', 'r+b') as stream:
    stream.seek(1_500_000); stream.write(b'!')
os.remove('src/b.py'); shutil.rmtree('gone'); os.rmdir('empty')
os.chmod('run', 0o644); os.chmod('src/mode.py', 0o775); os.chmod('src/private.py', 0o600)
os.remove('link'); os.symlink('src', 'link'); os.symlink('/etc/passwd', 'absolute')
os.remove('file-then-folder'); put(b'file-then-folder/inside')
shutil.rmtree('folder-then-file'); put(b'folder-then-file')
shutil.rmtree('again'); put(b'again/one', b'1'); put(b'again/three', b'3')
os.remove('was-a-link'); put(b'was-a-link')
os.remove('was-a-file'); os.symlink('x' * 200, 'was-a-file')
put(b'caf\\xff'); put(b'n' * 255); put(b'/'.join([b'long' * 20] * 4))
put(b'line\\nbreak'); put(b' -rf *')
os.link('src/deep/er/c.py', 'linked'); put(b'two-a', b'2'); os.link('two-a', 'two-b')
put(b'none', b'secret', 0); put(b'shut/inside'); os.chmod('shut', 0)
put(b'setuid', b'#!', 0o6755); os.makedirs('sticky'); os.chmod('sticky', 0o3777)
os.mkfifo('fifo'); os.remove('src/pipe.py'); os.mkfifo('src/pipe.py')
put(b'.git/config'); put(b'outside/x'); put(b'debug.log'); put(b'src/__pycache__/a.pyc')
put(b'report.xml', b'<testsuite/>')
with open('sparse', 'wb') as stream:
    stream.truncate(5 << 20)
os.rename('new/deep', 'new/moved')
"""

LONG = "long" * 20

CHANGED = f"""\
add  -rf *
add absolute
add again/three
delete again/two
modify big
add caf\\xff
delete empty
modify file-then-folder
add file-then-folder/inside
modify folder-then-file
delete folder-then-file/inside
delete gone
delete gone/x
delete gone/x/y
delete gone/z
add line\\x0abreak
symlink link
add linked
add {LONG}
add {LONG}/{LONG}
add {LONG}/{LONG}/{LONG}
add {LONG}/{LONG}/{LONG}/{LONG}
add new
add new.txt
add new/empty
add new/moved
add new/moved/er
add new/moved/er/file
add new/runs
add {"n" * 255}
add none
mode run
add setuid
add shut
add shut/inside
add sparse
modify src/a.py
delete src/b.py
mode src/mode.py
add sticky
add two-a
add two-b
symlink was-a-file
symlink was-a-link
"""

ASIDE = """\
add folder .git: git
add file debug.log: ignored
add fifo fifo: not-importable
add folder outside: outside-writable
add file outside/x: outside-writable
add file report.xml: output
add folder src/__pycache__: ignored
modify fifo src/pipe.py: not-importable
"""

FLAGGED = """\
linked: hard link: becomes a file of its own
setuid: mode bits 6000 are dropped
sparse: is binary: the patch shows no text to review
sticky: mode bits 3000 are dropped
two-a: hard link: becomes a file of its own
two-b: hard link: becomes a file of its own
"""

DIFF = "sha256:4cfffb0cdc9c529bcb7f1c07b89e56bbe8d0604230ce4ac76f803c5d3b257c26"
"""The diff hash of all that: one value, whichever way the files came and went."""


def make_project(root: Path) -> None:
    """Write the project that all of this is about."""
    files = {
        ".gitignore": b"*.log\n",
        "README": b"read me\n",
        "run": b"#!/bin/sh\n",
        "src/a.py": b"a = 1\n",
        "src/b.py": b"b = 2\n",
        "src/same.py": b"same = 1\n",
        "src/touched.py": b"t = 1\n",
        "src/mode.py": b"m = 1\n",
        "src/private.py": b"p = 1\n",
        "src/pipe.py": b"pipe\n",
        "src/deep/er/c.py": b"c = 3\n",
        "big": b"0123456789abcdef" * 131_072,
        "big-same": b"fedcba9876543210" * 131_072,
        "gone/x/y": b"y",
        "gone/z": b"z",
        "file-then-folder": b"f",
        "folder-then-file/inside": b"i",
        "again/one": b"1",
        "again/two": b"2",
        "was-a-file": b"w",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("README")
    (root / "was-a-link").symlink_to("nowhere")
    (root / "empty").mkdir()
    (root / os.fsdecode(b"kept-\xff")).write_bytes(b"raw")
    (root / ("long-name-" * 12)).symlink_to("t" * 150)


def work(place: Bench, code: str, snapshot: SnapshotView | None = None, **limits: int) -> Ran:
    """Run code in the project, or in a small one."""
    operation = place.operation(
        ("python3", "-c", code), limits=dataclasses.replace(SMALL, **limits)
    )
    if snapshot is not None:
        operation = dataclasses.replace(operation, snapshot=snapshot)
    return place.run_operation(operation)


def bring(ran: Ran, snapshot: SnapshotView, state: Path) -> Imported:
    """Import what a run left, as a run's flow does."""
    assert ran.result.trouble is None
    return import_changes(
        ran.result.upper,
        gone=ran.result.gone,
        base=snapshot.digest,
        load=snapshot.load,
        read_base=snapshot.open,
        rules=ImportRules(
            writable=("/**", "!/outside/"),
            outputs=(Output(name="report", path="report.xml"),),
            is_ignored=IgnoreRules.from_tree(snapshot.load, snapshot.digest).is_ignored,
        ),
        blobs=StateFolder(state).blobs,
        max_bytes=SMALL.workspace_bytes,
    )


def test_the_worker_finds_the_same_files_and_leaves_the_same_changes(
    place: Bench, request: pytest.FixtureRequest
) -> None:
    make_project(place.folder / "project")
    snapshot = place.take(place.folder / "project")
    ran = work(place, LIST + WORK, snapshot)
    assert (str(ran.outcome), ran.err) == ("passed", b"")
    found = json.loads(ran.out)
    assert {tuple(facts) for facts in found.values()} == {
        (mode, 315_532_800, True, target)
        for mode, target in [
            *(("0o40755", ""), ("0o100644", ""), ("0o100755", "")),
            *(("0o120777", target) for target in ("README", "nowhere", "t" * 150)),
        ]
    }
    imported = bring(ran, snapshot, place.folder / "state")
    changes, aside, flags = imported.changeset, imported.by_products, imported.flags
    assert "".join(f"{item.op} {show(item.path)}\n" for item in changes.changes) == CHANGED
    assert "".join(f"{i.op} {i.kind} {show(i.path)}: {i.reason}\n" for i in aside) == ASIDE
    assert "".join(f"{show(flag.path)}: {flag.text}\n" for flag in flags) == FLAGGED
    assert (changes.digest, imported.missing) == (DIFF, ())
    assert [item.digest for item in imported.artifacts] == [digest_of(b"<testsuite/>")]
    assert ran.result.problems == ()
    assert ran.result.usage["cpu_ms"] > 0
    strategy, reason, watched = REASONS[request.node.callspec.params["place"]]
    assert (ran.result.workspace, ran.result.workspace_reason) == (strategy, reason)
    assert ran.result.observed["workspaceWatch"] == watched
    place.remove(ran)
    assert not ran.result.workspace_folder.exists()


@pytest.mark.fault("L037")
def test_more_than_the_disk_limit_ends_a_run_that_would_go_on(place: Bench) -> None:
    started = time.monotonic()
    code = "import time; open('big', 'wb').write(b'x' * (6 << 20)); time.sleep(60)"
    ran = work(place, code, workspace_bytes=4 * MIB)
    assert str(ran.outcome) == "disk-limit"
    assert time.monotonic() - started < 20


def test_a_short_run_that_leaves_more_than_the_limit_has_not_passed(place: Bench) -> None:
    code = "for n in range(1500): open(f'empty-{n}', 'w').close()"
    assert str(work(place, code, workspace_bytes=4 * MIB).outcome) == "disk-limit"


def test_the_other_limits_end_a_run_alike(place: Bench) -> None:
    loud = work(place, "print('x' * 100_000)", output_bytes=50_000)
    assert str(loud.outcome) == "output-limit"
    slow = work(place, "import time; time.sleep(60)", wall_ms=700)
    assert str(slow.outcome) == "timeout(wall)"
    hungry = work(place, "x = bytearray(300 << 20)", memory_bytes=64 * MIB)
    assert str(hungry.outcome) == "oom"


# --- what differs, by name ---

DIFFERENT = """
import errno, os, socket
try:
    os.rename('src', 'moved'); print('renamed')
except OSError as error:
    print(errno.errorcode[error.errno])
socket.socket(socket.AF_UNIX).bind('socket')
open('marked', 'w').close(); os.setxattr('marked', 'user.note', b'1')
"""


def test_renaming_a_folder_of_the_snapshot_works_on_a_copy_only(place: Bench) -> None:
    """The one difference that a recipe can meet.

    Beside it, an engine's archive carries neither sockets nor extended attributes. Neither can
    land, so all that is lost with them is a line among the by-products and a flag.
    """
    make_project(place.folder / "project")
    snapshot = place.take(place.folder / "project")
    ran = work(place, DIFFERENT, snapshot)
    assert str(ran.outcome) == "passed"
    imported = bring(ran, snapshot, place.folder / "state")
    found = {(change.path, change.op) for change in imported.changeset.changes}
    aside = [(item.path, item.kind) for item in imported.by_products]
    flagged = [flag.text for flag in imported.flags]
    if ran.result.workspace == "overlay":
        assert ran.out == b"EXDEV\n"
        assert found == {(b"marked", "add")}
        assert aside == [(b"socket", "socket")]
        assert flagged == ["extended attribute user.note is dropped"]
    else:
        assert ran.out == b"renamed\n"
        assert {(b"marked", "add"), (b"src", "delete"), (b"moved/a.py", "add")} < found
        assert (aside, flagged) == ([], [])
