"""What reading one edited file back costs in a large project beside a small one."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from harness.model.entry import Entry
from tests.bench.figure import Figure, take_pairs
from tests.bench.ground import Bed, Ground, let_age

LARGE, SMALL = 100_000, 1_000


@dataclass(slots=True)
class _Moments:
    """Notes when the container had ended, and when the changeset was on the ledger.

    Stands where the session's ledger stands; it changes nothing.
    """

    ledger: Any
    ended: float = 0.0
    stored: float = 0.0

    def append(self, verb: str, phase: str, **rest: Any) -> Entry:
        """Append, and note the moment of a quarantine."""
        entry: Entry = self.ledger.append(verb, phase, **rest)
        if verb == "quarantine":
            self.stored = time.perf_counter()
        return entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)


def changeset_growth(ground: Ground, count: int) -> list[Figure]:
    """Measure from the container's end to the stored changeset at two sizes."""
    beds = {files: _watched(ground, files) for files in (LARGE, SMALL)}

    def measure(files: int) -> float:
        bed, moments = beds[files]
        bed.run(bed.approve(bed.seal()), tell=lambda text: _note(moments, text))
        return moments.stored - moments.ended

    return [
        Figure(
            name="changeset_growth",
            pairs=take_pairs(count, lambda: measure(LARGE), lambda: measure(SMALL)),
            baseline=f"the same at {SMALL} files",
            bound=1.5,
        )
    ]


def _note(moments: _Moments, text: str) -> None:
    if text == "reading what it changed":
        moments.ended = time.perf_counter()


def _watched(ground: Ground, files: int) -> tuple[Bed, _Moments]:
    bed = ground.bed(ground.tree(files))
    moments = _Moments(bed.session.ledger)
    host = replace(bed.session.host, ledger=moments)  # type: ignore[arg-type]  # stands for it
    bed.session = replace(bed.session, host=host)
    let_age()
    bed.seal()
    return bed, moments
