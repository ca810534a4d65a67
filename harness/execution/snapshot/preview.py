"""What a snapshot would hold, and what would stay out and why; nothing is written.

It is the same walk as a snapshot's, so it refuses what that one refuses.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.execution.snapshot.scan import Scan
from harness.execution.snapshot.selection import Selection, Verdict
from harness.execution.snapshot.stat_cache import Rows, load_rows
from harness.execution.snapshot.take import MAX_BYTES, STAT_CACHE, scope_of
from harness.execution.snapshot.totals import LeftOut
from harness.store.handles import open_folder_path
from harness.store.state import StateFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a snapshot would be.

    Attributes:
        files: how many files would enter.
        bytes: their sizes, added up.
        left_out: what would not, by path; a folder ends with a slash and stands for all below it.
    """

    files: int
    bytes: int
    left_out: tuple[LeftOut, ...]


def preview_snapshot(
    root: Path,
    *,
    state: StateFolder,
    project: str,
    include: Iterable[str],
    exclude: Iterable[str],
    admit_secrets: Iterable[str],
) -> Preview:
    """Walk a project as a snapshot would.

    Args:
        root: the project's folder.
        state: what a snapshot saw is not read again.
        project: its id.
        include: gitignore-style patterns of what enters; none means all.
        exclude: patterns of what stays out.
        admit_secrets: patterns of secret-looking files that may enter.

    Raises:
        InputError: everything that may not enter, by name; too many bytes; the project can't be
            read, or keeps changing.
    """
    selection = Selection(include=include, exclude=exclude, admit_secrets=admit_secrets)
    cache = state.project(project) / STAT_CACHE
    try:
        with open_folder_path(root) as root_fd:
            known = load_rows(cache, scope_of(selection, root_fd))
            scan = Scan(selection, known=known, blobs=state.blobs, max_bytes=MAX_BYTES)
            scan.run(root_fd)
    except OSError as error:
        raise InputError(f"project: can't be opened: {error.strerror}") from error
    left_out = sorted(_left_out(scan.totals.rows, selection), key=lambda item: item.path)
    return Preview(files=scan.totals.files, bytes=scan.totals.size, left_out=tuple(left_out))


def _left_out(rows: Rows, selection: Selection) -> Iterator[LeftOut]:
    """Yield what the walk saw and did not take; what lies below a folder left out was not seen."""
    taken = {b""} if selection.takes_all else set()
    for folder, row in sorted(rows.items()):  # a folder before what lies in it
        for name, seen in row.entries().items():
            path = folder + b"/" + name if folder else name
            is_folder = stat.S_ISDIR(seen.facts.mode)
            if seen.secret:
                yield LeftOut(path, f"looks like a secret: {seen.secret}")
            elif seen.verdict == Verdict.SKIP:
                reason = selection.why_not(path, is_folder=is_folder, inside=folder in taken)
                yield LeftOut(path + b"/" if is_folder else path, reason)
            elif is_folder and seen.verdict == Verdict.TAKE:
                taken.add(path)
