"""Cost against tree size: the points of the plot."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.commands import STATUS
from tests.bench.figure import timed
from tests.bench.ground import Ground, let_age
from tests.bench.snapshot_figures import prepare_repository, seconds_to_start

SIZES = (100, 1_000, 10_000, 100_000)
SERIES = ("first seal", "seal after one edit", "seal, nothing changed", "git status", "start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one tree size costs, in seconds, by the names of `SERIES`."""

    files: int
    seconds: dict[str, float]


def measure_growth(ground: Ground, repeats: int = 3) -> list[Point]:
    """Measure every size; the fastest of a few repeats, but the first seal, which is one."""
    points = []
    for files in SIZES:
        bed = ground.bed(ground.tree(files))
        prepare_repository(bed)
        seconds = {"first seal": timed(bed.seal)}
        edits, starts = [], []
        for _ in range(repeats):
            bed.edit()
            edits.append(timed(bed.seal))
            starts.append(seconds_to_start(bed, bed.approve(bed.seal())))
        let_age()
        bed.git("status")
        bed.seal()
        seconds["seal after one edit"] = min(edits)
        seconds["start"] = min(starts)
        seconds["seal, nothing changed"] = min(timed(bed.seal) for _ in range(repeats))
        seconds["git status"] = min(timed(lambda: bed.git(*STATUS)) for _ in range(repeats))  # noqa: B023 - called at once
        points.append(Point(files=files, seconds=seconds))
    return points
