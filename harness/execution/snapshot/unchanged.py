"""The folders that are as the last scan saw them, with all below them: nothing there is walked.

A folder counts when it and everything below it is as recorded, its objects are in the store, and
the ignore rules that hold in it are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from harness.execution.snapshot.ignore import IgnoreChain, name_rules
from harness.execution.snapshot.row import Row, child_paths
from harness.execution.snapshot.survey import find_changed
from harness.store.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class Unchanged:
    """What a scan need not walk.

    Attributes:
        known: the rows of the last scan.
        touched: folders that are not as recorded, or have one below them.
    """

    known: Mapping[bytes, Row]
    touched: frozenset[bytes]

    @classmethod
    def find(cls, root_fd: int, known: Mapping[bytes, Row], blobs: BlobStore) -> Self:
        """Survey a project.

        Args:
            root_fd: the project's folder, held.
            known: the rows of the last scan.
            blobs: asked whether it has the objects.
        """
        changed = find_changed(root_fd, (row.recorded(path) for path, row in known.items()))
        for path, row in known.items():
            is_stored = all(map(blobs.has, row.objects()))
            if not is_stored or any(below not in known for below in child_paths(path, row)):
                changed.add(path)
        return cls(known, frozenset(_with_those_above(changed)))

    def holds(self, path: bytes, above: IgnoreChain | None) -> bool:
        """Tell whether a folder is as it was, with all below it.

        Args:
            path: of the folder.
            above: the ignore rules of the folder above it.
        """
        row = self.known.get(path)
        if row is None or path in self.touched:
            return False
        rules = above.digest if above else ""
        if row.ignore:
            rules = name_rules(rules, path + b"/" if path else b"", row.ignore.digest)
        return rules == row.rules

    def rows(self, path: bytes) -> Iterator[tuple[bytes, Row]]:
        """Yield path and row of a folder that is as it was, and of all folders below it."""
        waiting = [path]
        while waiting:
            path = waiting.pop()
            row = self.known[path]
            yield path, row
            waiting += child_paths(path, row)


def _with_those_above(paths: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        upper = path
        while upper not in found:
            found.add(upper)
            upper = upper.rpartition(b"/")[0]
    return found
