"""What one walk gathers on its way, and can forget again when it has to look twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.errors import InputError, Issue
from harness.execution.snapshot.read_file import MovedError
from harness.execution.snapshot.stat_cache import Rows
from harness.model.relpath import show


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
        largest: size and path of the three largest files.
    """

    max_bytes: int
    files: int = 0
    size: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    rows: Rows = field(default_factory=dict)
    largest: list[tuple[int, bytes]] = field(default_factory=list)

    def has_room(self, size: int) -> bool:
        """Tell whether a file of this size may be read."""
        return self.size + size <= self.max_bytes

    def add_file(self, path: bytes, size: int) -> None:
        """Count a file."""
        self.files += 1
        self.size += size
        if len(self.largest) < 3 or size > self.largest[-1][0]:  # noqa: PLR2004 - three, as promised
            self.largest = sorted([*self.largest, (size, path)], reverse=True)[:3]

    def refuse(self, path: bytes, message: str) -> None:
        """Note something that may not enter."""
        self.issues.append(Issue(message=message, where=show(path), fix="exclude or remove it"))

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """Forget what the block gathered when it ends with `MovedError`."""
        mark = (self.files, self.size, self.largest, len(self.left_out), len(self.issues))
        try:
            yield
        except MovedError:
            self.files, self.size, self.largest = mark[:3]
            del self.left_out[mark[3] :], self.issues[mark[4] :]
            raise

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
                for size, path in self.largest
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
