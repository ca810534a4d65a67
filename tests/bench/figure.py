"""A figure: how many times the baseline's cost ours is, from interleaved pairs of one run."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One measurement of ours and one of the baseline, taken one right after the other.

    Attributes:
        ours: seconds, or bytes.
        theirs: the same of the baseline.
    """

    ours: float
    theirs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What the pairs of one comparison say.

    Attributes:
        name: as in the table of bounds.
        pairs: in the order in which they were taken.
        baseline: what ours was compared with: a command, or another size of the same.
        bound: the largest value that is acceptable.
        unit: of the two sides of a pair.
    """

    name: str
    pairs: Sequence[Pair]
    baseline: str
    bound: float
    unit: str = "s"

    @property
    def value(self) -> float:
        """Return the median of the pairs' ratios: a slow moment hits both sides of its pair."""
        return statistics.median(pair.ours / pair.theirs for pair in self.pairs)

    @property
    def ours(self) -> float:
        """Return the median of our side."""
        return statistics.median(pair.ours for pair in self.pairs)

    @property
    def theirs(self) -> float:
        """Return the median of the baseline's side."""
        return statistics.median(pair.theirs for pair in self.pairs)

    @property
    def holds(self) -> bool:
        """Tell whether the bound holds."""
        return self.value <= self.bound

    def line(self) -> str:
        """Return the figure as one line of JSON."""
        return json.dumps(
            {
                "name": self.name,
                "value": round(self.value, 3),
                "unit": "ratio",
                "n": len(self.pairs),
                "baseline": self.baseline,
                "bound": self.bound,
                f"ours_{self.unit}": round(self.ours, 4),
                f"baseline_{self.unit}": round(self.theirs, 4),
            }
        )


def take_pairs(count: int, ours: Callable[[], float], theirs: Callable[[], float]) -> list[Pair]:
    """Measure both sides in turn, the first of a pair changing; one pair before does not count.

    Args:
        count: how many pairs to return.
        ours: measures our side once.
        theirs: measures the baseline once.
    """
    pairs = []
    for number in range(count + 1):
        if number % 2:
            mine = ours()
            pair = Pair(ours=mine, theirs=theirs())
        else:
            other = theirs()
            pair = Pair(ours=ours(), theirs=other)
        pairs.append(pair)
    return pairs[1:]


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds something took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
