"""The patch: a view of a changeset for people and for `git apply`, made by git itself.

Rules:
    * git works in a private, empty, bare repository that holds only the touched paths: no
      configuration, attributes, hooks or programs of the project or of the caller are read.
    * The options are fixed, so that the same changeset always gives the same text.
    * The changeset is what is approved; the patch shows it. git has no empty folders: a folder
      that appears or goes without content is not in the patch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import InputError, SandboxUnavailableError
from harness.model.changeset import Change, Changeset
from harness.model.tree import Node
from harness.store.blobs import BlobStore
from harness.store.durable import state_error

GIT_SECONDS = 120
PATH = "/usr/local/bin:/usr/bin:/bin"

_DIFF = (
    "diff-tree", "-r", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
    "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--diff-algorithm=myers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeStat:
    """How much of one path changed.

    Attributes:
        change: the change.
        added: lines added; None for a folder and for binary content.
        removed: lines removed; None likewise.
    """

    change: Change
    added: int | None
    removed: int | None


def render_patch(changeset: Changeset, *, blobs: BlobStore, max_bytes: int) -> bytes:
    """Return the changeset as a patch that `git apply` accepts; empty for an empty one.

    Args:
        changeset: what to show.
        blobs: holds the content of both sides.
        max_bytes: most bytes of content on both sides together; the patch is at most about twice
            that, where every line is short.

    Raises:
        InputError: the content is larger.
        VerificationError: a blob is missing or damaged.
        SandboxUnavailableError: git is missing, or failed.
        StateError: the temporary folder can't be written.
    """
    return _diff(changeset, blobs, max_bytes, ("--patch", "--binary", "--unified=3"))


def changes_stat(
    changeset: Changeset, *, blobs: BlobStore, max_bytes: int
) -> tuple[ChangeStat, ...]:
    """Return the lines added and removed per path, in the order of the changeset.

    Args:
        changeset: what to count.
        blobs: holds the content of both sides.
        max_bytes: most bytes of content on both sides together.

    Raises:
        InputError: the content is larger.
        VerificationError: a blob is missing or damaged.
        SandboxUnavailableError: git is missing, or failed.
        StateError: the temporary folder can't be written.
    """
    lines: dict[bytes, tuple[int, int]] = {}
    for line in _diff(changeset, blobs, max_bytes, ("--numstat", "-z")).split(b"\0"):
        if line and not line.startswith(b"-"):
            added, removed, path = line.split(b"\t", 2)
            lines[path] = int(added), int(removed)
    return tuple(
        ChangeStat(change, *lines.get(change.path, (None, None))) for change in changeset.changes
    )


def _diff(changeset: Changeset, blobs: BlobStore, max_bytes: int, view: tuple[str, ...]) -> bytes:
    touched = [node for c in changeset.changes for node in (c.before, c.after) if node]
    total = sum(node.size for node in touched if node.type != "folder")
    if total > max_bytes:
        raise InputError(
            f"patch: expected at most {max_bytes} bytes of content, got {total}",
            hint="look at the list of changes instead: `harness diff RUN --stat` or `--json`",
        )
    try:
        with tempfile.TemporaryDirectory(prefix="harness-patch-") as name:
            return _diff_in(Path(name), changeset, blobs, view)
    except OSError as error:
        raise state_error("make a patch", error) from error


def _diff_in(folder: Path, changeset: Changeset, blobs: BlobStore, view: tuple[str, ...]) -> bytes:
    stream, output = folder / "stream", folder / "output"
    with stream.open("wb") as target:
        for side in ("before", "after"):
            _write_side(target, side, changeset.changes, blobs)
    _git(folder, ("init", "--quiet", "--bare", "--template=", "--initial-branch=none", "."))
    with stream.open("rb") as source:
        _git(folder, ("fast-import", "--quiet"), stdin=source)
    with output.open("wb") as target:
        _git(folder, (*_DIFF, *view, "refs/view/before", "refs/view/after"), stdout=target)
    return output.read_bytes()


def _write_side(target: BinaryIO, side: str, changes: Iterable[Change], blobs: BlobStore) -> None:
    """Write one side as a commit of `git fast-import` (git-fast-import(1))."""
    target.write(f"commit refs/view/{side}\ncommitter x <x> 0 +0000\ndata 0\n".encode())
    for change in changes:
        node: Node | None = getattr(change, side)
        if node is None or node.type == "folder":
            continue
        target.write(f"M {node.mode} inline ".encode() + _quote(change.path))
        target.write(f"\ndata {node.size}\n".encode())
        target.writelines(blobs.chunks(node.digest))
        target.write(b"\n")


def _quote(path: bytes) -> bytes:
    """Return a path in C quotes with every byte in octal: no byte has a meaning of its own."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'


def _git(
    folder: Path,
    arguments: tuple[str, ...],
    *,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
) -> None:
    """Run git in the private repository, seeing nothing of the caller's environment."""
    program = shutil.which("git", path=PATH)
    if program is None:
        raise SandboxUnavailableError("git: is not installed", hint="install git")
    settings = ("core.quotePath=true", "core.attributesFile=/dev/null", "core.fsync=none")
    argv = [program, *(part for item in settings for part in ("-c", item)), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and an argv list
            argv,
            cwd=folder,
            env=_environment(folder),
            stdin=stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxUnavailableError(
            f"git {arguments[0]}: expected an end within {GIT_SECONDS} seconds"
        ) from error
    if done.returncode:
        raise SandboxUnavailableError(f"git {arguments[0]}: expected exit 0, got {done.returncode}")


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": PATH,
        "LC_ALL": "C",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "GIT_DIR": str(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
    }
