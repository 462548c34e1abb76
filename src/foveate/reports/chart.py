"""Line charts as SVG, drawn in the colours of the page they stand in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 12, 34
"""Room for the labels around the plot."""

Point = tuple[float, float]


def line_chart(series: Mapping[str, Sequence[Point]], title: str, x_label: str) -> str:
    """A chart of one or more lines over a common axis, from 0 up.

    Its parts have the classes `line-1`, `line-2`, ..., `axis` and `grid`, which the page's style
    gives their colours.

    Args:
        series: the points of each line, in order; points that are not finite are left out.
        title: what is drawn, for those who can not see it.
        x_label: what the horizontal axis is.

    Returns:
        An <svg> element.
    """
    lines = {
        name: [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
        for name, points in series.items()
    }
    points = [point for line in lines.values() for point in line]
    x_ticks = ticks(max((x for x, _ in points), default=1.0))
    y_ticks = ticks(max((y for _, y in points), default=1.0))

    def place(point: Point) -> Point:
        x, y = point[0] / x_ticks[-1], point[1] / y_ticks[-1]
        across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return round(_LEFT + across * x, 1), round(_HEIGHT - _BOTTOM - down * y, 1)

    parts = [*_axes(x_ticks, y_ticks, place), _text(_WIDTH / 2, _HEIGHT - 4, x_label, "middle")]
    for number, (name, line) in enumerate(lines.items(), start=1):
        if line:
            parts.append(_line(f"line-{number}", name, [place(point) for point in line]))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    label = escape(title, quote=True)
    return f'<svg class="chart" {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def ticks(largest: float) -> list[float]:
    """About five round numbers from 0 to beyond the largest.

    Example:
        >>> ticks(0.83)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if not largest > 0:
        return [0.0, 1.0]
    rough = largest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))
    count = math.ceil(largest / step - 1e-9)
    return [float(f"{number * step:.6g}") for number in range(count + 1)]


def _axes(x_ticks: list[float], y_ticks: list[float], place: object) -> list[str]:
    assert callable(place)
    parts = []
    for tick in y_ticks:
        _, y = place((0.0, tick))
        ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"'
        parts += [f'<line class="grid" {ends}/>', _text(_LEFT - 6, y + 4, f"{tick:g}", "end")]
    for tick in x_ticks:
        x, y = place((tick, 0.0))
        parts.append(_text(x, y + 15, f"{tick:g}", "middle"))
    return parts


def _line(kind: str, name: str, places: list[Point]) -> str:
    route = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.2"/>' for x, y in places)
    line = f'<polyline points="{route}" fill="none"/>'
    return f'<g class="{kind}"><title>{escape(name)}</title>{line}{dots}</g>'


def _text(x: int | float, y: int | float, text: str, anchor: str) -> str:
    where = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text class="axis" {where}>{escape(text)}</text>'
