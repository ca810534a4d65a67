"""The page of the measured figures: bounds, cost against tree size, and the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.growth import SERIES, Point
from tests.bench.plot import draw

HEAD = """\
# Speed

`make speed` measured this and wrote this page; `make bench` prints the same figures as JSON and
fails when a bound is passed. Each figure is the median of interleaved pairs of one run: ours, then
what it is compared with, on the same files, image, mounts and flags. Measure on your own machine
before you rely on a number.

"""


def write_page(
    folder: Path, figures: Sequence[Figure], points: Sequence[Point], machine: Mapping[str, str]
) -> None:
    """Write `speed.md` and `speed.svg` into a folder."""
    (folder / "speed.svg").write_text(draw(points), encoding="utf-8")
    text = HEAD + _machine(machine) + _figures(figures) + _growth(points) + _baselines(figures)
    (folder / "speed.md").write_text(text, encoding="utf-8")


def _machine(machine: Mapping[str, str]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in machine.items())
    return f"## Machine\n\n| what | here |\n|---|---|\n{rows}\n"


def _figures(figures: Sequence[Figure]) -> str:
    rows = "".join(
        f"| `{figure.name}` | {figure.value:.2f} | {figure.bound:g} | "
        f"{_amount(figure.ours, figure.unit)} | {_amount(figure.theirs, figure.unit)} | "
        f"{len(figure.pairs)} |\n"
        for figure in figures
    )
    return (
        "## Bounds\n\nRatio: ours divided by the baseline; smaller is better.\n\n"
        "| figure | ratio | bound | ours | baseline | pairs |\n|---|---|---|---|---|---|\n"
        f"{rows}\n"
    )


def _growth(points: Sequence[Point]) -> str:
    head = "| files | " + " | ".join(SERIES) + " |\n" + "|---" * (len(SERIES) + 1) + "|\n"
    rows = "".join(
        f"| {point.files:,} | "
        + " | ".join(_amount(point.seconds[name], "s") for name in SERIES)
        + " |\n"
        for point in points
    )
    return (
        "## Cost against tree size\n\n![Seconds against files](speed.svg)\n\n"
        "The first seal copies the project into a layer; later ones look at every file and read "
        "what changed. *Start* is from an approved plan to the first output of its recipe.\n\n"
        f"{head}{rows}\n"
    )


def _baselines(figures: Sequence[Figure]) -> str:
    rows = "".join(f"- `{figure.name}`: `{figure.baseline}`\n" for figure in figures)
    return f"## Baselines\n\n{rows}"


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1024:,.0f} KiB"
    return f"{value * 1000:,.0f} ms" if value < 1 else f"{value:.1f} s"
