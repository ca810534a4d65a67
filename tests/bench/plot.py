"""A plot of cost against tree size as SVG: both axes logarithmic, a line a series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tests.bench.growth import SERIES, Point

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 20, 50
COLOURS = ("#b5432f", "#c98a1b", "#2f6db5", "#777777", "#3c8d5a")
DECADES = range(-2, 3)
"""Powers of ten of the seconds shown."""


def draw(points: Sequence[Point]) -> str:
    """Return the plot."""
    sizes = [point.files for point in points]
    parts = [*_grid(sizes)]
    ends: list[float] = []
    for series, colour in zip(SERIES, COLOURS, strict=True):
        spots = [(_x(p.files, sizes), _y(p.seconds[series])) for p in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        label = _apart(spots[-1][1], ends)
        ends.append(label)
        parts.append(_text(spots[-1][0] + 10, label + 4, series, anchor="start", fill=colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img" '
        'aria-label="Seconds against the number of files, both logarithmic">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _grid(sizes: Sequence[int]) -> list[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = [
        f'<line x1="{LEFT}" x2="{right}" y1="{_y(10**n):.1f}" y2="{_y(10**n):.1f}" '
        'stroke="#dddddd"/>'
        for n in DECADES
    ]
    names = [
        _text(LEFT - 8, _y(10**n) + 4, f"{10**n:g} s", anchor="end", fill="#333333")
        for n in DECADES
    ]
    below = [
        _text(_x(size, sizes), floor + 18, f"{size:,}", anchor="middle", fill="#333333")
        for size in sizes
    ]
    title = _text((LEFT + right) / 2, HEIGHT - 10, "files", anchor="middle", fill="#333333")
    return [*lines, *names, *below, title]


def _x(files: int, sizes: Sequence[int]) -> float:
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(files) - low) / (high - low)


def _y(seconds: float) -> float:
    low, high = DECADES[0], DECADES[-1]
    place = min(max(math.log10(seconds), low), high)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (place - low) / (high - low)


def _apart(wanted: float, taken: Sequence[float]) -> float:
    """Return a height for a label that covers none of those placed before."""
    for step in range(HEIGHT):
        for height in (wanted + step, wanted - step):
            if all(abs(height - other) >= 14 for other in taken):
                return height
    return wanted


def _text(x: float, y: float, text: str, *, anchor: str, fill: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )
