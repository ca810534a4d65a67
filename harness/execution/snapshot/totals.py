"""What one walk gathers on its way, and can forget again when it has to look twice."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.errors import InputError, Issue
from harness.execution.snapshot.row import Row
from harness.execution.snapshot.stat_cache import Rows
from harness.model.relpath import show

_LARGEST_NAMED = 3

Mark = tuple[int, int, int, int]
"""How much had been gathered at a moment."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that looks like a secret and stayed out.

    Attributes:
        path: in the project.
        reason: what it looks like.
    """

    path: bytes
    reason: str


@dataclass(slots=True, kw_only=True)
class Totals:
    """Counts, refusals and cache rows of one walk.

    Attributes:
        max_bytes: most bytes of files that may enter.
        files: files that enter.
        size: their apparent sizes in bytes, added up before any is read.
        left_out: secret-looking files.
        issues: what may not enter.
        rows: every folder as it was seen.
    """

    max_bytes: int
    files: int = 0
    size: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    rows: Rows = field(default_factory=dict)

    def has_room(self, size: int) -> bool:
        """Tell whether a file of this size may be read."""
        return self.size + size <= self.max_bytes

    def add_file(self, size: int) -> None:
        """Count a file."""
        self.files += 1
        self.size += size

    def add_row(self, path: bytes, row: Row) -> None:
        """Count the files of a folder that is as it was, and keep its row."""
        self.rows[path] = row
        self.files += row.files
        self.size += row.file_bytes
        if row.secrets:
            names = row.names()
            above = path + b"/" if path else b""
            self.left_out += [
                LeftOut(above + names[place], reason) for place, reason in row.secrets.items()
            ]

    def refuse(self, path: bytes, message: str) -> None:
        """Note something that may not enter."""
        self.issues.append(Issue(message=message, where=show(path), fix="exclude or remove it"))

    def mark(self) -> Mark:
        """Return how much is gathered, to `rewind` to."""
        return (self.files, self.size, len(self.left_out), len(self.issues))

    def rewind(self, mark: Mark) -> None:
        """Forget what was gathered since a mark."""
        self.files, self.size = mark[:2]
        del self.left_out[mark[2] :], self.issues[mark[3] :]

    def check(self) -> None:
        """Refuse what was gathered when something in it may not enter.

        Raises:
            InputError: all of it is named.
        """
        issues = sorted(self.issues, key=lambda issue: issue.where)
        if self.size > self.max_bytes:
            message = f"expected at most {self.max_bytes} bytes, got {self.size}"
            issues += [
                Issue(message=f"has {size} bytes", where=show(path), fix="exclude it")
                for size, path in heapq.nlargest(_LARGEST_NAMED, self._sizes())
            ]
        elif len(issues) == 1:
            message = str(issues[0])
        elif issues:
            message = f"{len(issues)} paths can't enter"
        else:
            return
        raise InputError(
            f"snapshot: {message}",
            hint="exclude them in the recipe's inputs, or ignore them; nothing was written",
            issues=tuple(issues),
        )

    def _sizes(self) -> Iterator[tuple[int, bytes]]:
        """Yield size and path of every file that would enter."""
        for folder, row in self.rows.items():
            above = folder + b"/" if folder else b""
            for name, seen in row.entries().items():
                if seen.is_entering_file:
                    yield seen.facts.size, above + name
