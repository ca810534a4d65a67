"""The arithmetic of figures, and that our side and the baseline's are really taken in turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.commands import fill, spelled
from tests.bench.figure import Figure, Pair, take_pairs
from tests.bench.growth import SERIES, Point
from tests.bench.page import write_page
from tests.bench.plot import draw


def figure(*pairs: tuple[float, float], bound: float = 2) -> Figure:
    taken = [Pair(ours=ours, theirs=theirs) for ours, theirs in pairs]
    return Figure(name="some", pairs=taken, baseline="git status", bound=bound)


def test_the_value_is_the_median_of_the_pairs_ratios_not_the_ratio_of_medians() -> None:
    some = figure((1, 1), (30, 10), (4, 2))
    assert some.value == 2
    assert (some.ours, some.theirs) == (4, 2)
    assert figure((1, 1), (30, 10)).value == 2  # an even number: between the two in the middle


def test_one_slow_moment_hits_both_sides_and_changes_nothing() -> None:
    assert figure((2, 1), (200, 100), (2, 1)).value == 2


@pytest.mark.parametrize(("ours", "holds"), [(2.0, True), (2.01, False)])
def test_a_bound_holds_up_to_itself(ours: float, holds: bool) -> None:
    assert figure((ours, 1)).holds is holds


def test_a_line_has_the_promised_members() -> None:
    line = figure((1.23456, 1), (1, 1)).line()
    assert "\n" not in line
    value = json.loads(line)
    assert {key: value[key] for key in ("name", "value", "unit", "n", "baseline")} == {
        "name": "some",
        "value": 1.117,
        "unit": "ratio",
        "n": 2,
        "baseline": "git status",
    }
    assert (value["bound"], value["ours_s"], value["baseline_s"]) == (2, 1.1173, 1.0)


def test_pairs_are_interleaved_and_the_first_one_does_not_count() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return len(order)

    pairs = take_pairs(2, lambda: side("ours"), lambda: side("theirs"))
    assert order == ["theirs", "ours", "ours", "theirs", "theirs", "ours"]
    assert pairs == [Pair(ours=3, theirs=4), Pair(ours=6, theirs=5)]


def test_a_command_is_spelled_as_typed_and_filled_with_the_places_of_one_run() -> None:
    words = ("docker", "run", "-e", "A=b c", "--mount=src=$LAYER,dst=/w", "$IMAGE")
    assert spelled(words) == "docker run -e 'A=b c' --mount=src=$LAYER,dst=/w $IMAGE"
    assert fill(words, {"$LAYER": "/l", "$IMAGE": "i"})[4:] == ["--mount=src=/l,dst=/w", "i"]
    with pytest.raises(KeyError):
        fill(words, {"$LAYER": "/l"})


def points() -> list[Point]:
    sizes = (100, 1000, 10_000)
    return [Point(files=n, seconds=dict.fromkeys(SERIES, n / 1000)) for n in sizes]


def test_a_plot_places_a_decade_of_files_and_of_seconds_evenly() -> None:
    text = draw(points())
    line = text.split('<polyline points="')[1].split('"')[0]
    spots = [tuple(map(float, spot.split(","))) for spot in line.split()]
    assert spots[1][0] - spots[0][0] == pytest.approx(spots[2][0] - spots[1][0], abs=0.2)
    assert spots[1][1] - spots[0][1] == pytest.approx(spots[2][1] - spots[1][1], abs=0.2)
    assert spots[0][1] > spots[2][1]  # dearer is higher
    assert all(f">{name}</text>" in text for name in SERIES)


def test_the_page_has_every_figure_size_and_baseline_and_the_machine(tmp_path: Path) -> None:
    write_page(tmp_path, [figure((1, 1)), figure((1, 2))], points(), {"cores": "2"})
    text = (tmp_path / "speed.md").read_text()
    assert "| `some` | 1.00 | 2 | 1.0 s | 1.0 s | 1 |" in text
    assert "| 10,000 | 10.0 s |" in text
    assert "| cores | 2 |" in text
    assert "- `some`: `git status`" in text
    assert "](speed.svg)" in text
    assert (tmp_path / "speed.svg").read_text() == draw(points())
