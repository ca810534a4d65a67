"""What freezing a project costs beside git, and what the second snapshot of a large one costs."""

from __future__ import annotations

import secrets
import time

from harness.model.digest import Digest
from tests.bench.commands import ADD, STATUS, spelled
from tests.bench.figure import Figure, Pair, take_pairs, timed
from tests.bench.ground import Bed, Ground, let_age, occupied

FILES = 10_000
LARGE, SMALL = 100_000, 10_000
FOLDER_BYTES = 4096
"""What a folder, or a small file, takes on disk."""


def seal_unchanged(ground: Ground, count: int) -> list[Figure]:
    """Measure sealing a tree that did not change against `git status`."""
    bed = ground.bed(ground.tree(FILES))
    prepare_repository(bed)
    bed.seal()
    return [
        Figure(
            name="seal_unchanged",
            pairs=take_pairs(
                count, lambda: timed(bed.seal), lambda: timed(lambda: bed.git(*STATUS))
            ),
            baseline=f"git {spelled(STATUS)}",
            bound=3,
        )
    ]


def prepare_repository(bed: Bed) -> None:
    """Commit nothing, but have every file in git's index, and old enough to be trusted."""
    if not (bed.project / ".git").exists():
        bed.git("init", "-q")
        bed.git(*ADD)
    let_age()
    bed.git("status")


def seal_cold(ground: Ground, count: int) -> list[Figure]:
    """Measure the first seal of a tree, layer included, against adding it to a new repository."""
    project = ground.tree(FILES)

    def ours() -> float:
        return timed(ground.bed(project).seal)

    def git_add() -> float:
        bed, repository = beds[0], ground.folder / f"git-{secrets.token_hex(3)}"
        bed.git("init", "-q", folder=repository)
        return timed(lambda: bed.git(*ADD, folder=repository))

    beds = [ground.bed(project)]
    return [
        Figure(
            name="seal_cold",
            pairs=take_pairs(count, ours, git_add),
            baseline=f"git {spelled(ADD)} (into a new repository)",
            bound=1.3,
        )
    ]


def second_snapshot(ground: Ground, count: int) -> list[Figure]:
    """Measure edit, seal, start at two sizes; and what the second snapshot takes on disk."""
    beds = {files: _frozen(ground, files) for files in (LARGE, SMALL)}
    grown: list[Pair] = []

    def measure(files: int) -> float:
        bed = beds[files]
        before, size = _on_disk(bed), bed.edit()
        began = time.perf_counter()
        sealed = bed.seal()
        spent = time.perf_counter() - began
        if files == LARGE:
            grown.append(Pair(ours=_on_disk(bed) - before, theirs=size + _PATH_BYTES))
        return spent + seconds_to_start(bed, bed.approve(sealed))

    pairs = take_pairs(count, lambda: measure(LARGE), lambda: measure(SMALL))
    return [
        Figure(
            name="second_snapshot",
            pairs=pairs,
            baseline=f"the same at {SMALL} files",
            bound=2,
        ),
        Figure(
            name="second_snapshot_disk",
            pairs=grown[1:],
            baseline="the edited file, and 8 blocks of 4 KiB for each folder above it",
            bound=1,
            unit="bytes",
        ),
    ]


_PATH_BYTES = 4 * 8 * FOLDER_BYTES
"""The edited file's four folders: each has a folder in the layer and an object in the store, whose
own folder may be new; the layer has two lists, an index entry, and its own folder besides."""


def _on_disk(bed: Bed) -> int:
    return occupied(bed.state, ("layers", "objects"))


def _frozen(ground: Ground, files: int) -> Bed:
    bed = ground.bed(ground.tree(files))
    let_age()
    bed.seal()
    bed.run(bed.approve(bed.seal()))
    return bed


def seconds_to_start(bed: Bed, digest: Digest) -> float:
    """Run an approved plan; return after how many seconds its first output came."""
    began = time.perf_counter()
    seen: list[float] = []
    bed.run(digest, sink=lambda *_: seen.append(time.perf_counter()))
    return seen[0] - began
