"""Numbers as they stand on road signs: strokes of a pen of one width, as in DIN 1451.

A stroke is a line of points (x, y) in a box from 0 to 1, y pointing down. No font is needed, and
weight and width can vary freely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import ImageDraw

Stroke = NDArray[np.float64]
Point = tuple[float, float]

NARROW = {"1": 0.6, ",": 0.25, "t": 0.7}
"""Widths of the characters that are narrower than the others."""


def draw_text(
    draw: ImageDraw.ImageDraw,
    text: str,
    centre: Point,
    size: tuple[float, float],
    pen: float,
    colour: tuple[int, int, int, int],
) -> None:
    """Write a text of characters in `STROKES`.

    Args:
        draw: where to.
        text: the characters.
        centre: (x, y) of its middle.
        size: height of the text, and width of a character, from edge to edge of the strokes.
        pen: width of the strokes.
        colour: of the strokes.
    """
    height, width = size[0] - pen, size[1] - pen
    gap = 1.45 * pen
    widths = [width * NARROW.get(character, 1.0) for character in text]
    x = centre[0] - (sum(widths) + gap * (len(text) - 1)) / 2
    top = centre[1] - height / 2
    for character, wide in zip(text, widths, strict=True):
        for stroke in STROKES[character]:
            points = stroke * (wide, height) + (x, top)
            draw.line([tuple(point) for point in points], colour, max(1, round(pen)), "curve")
        x += wide + gap


def _line(*points: Point) -> Stroke:
    return np.array(points, dtype=np.float64)


def _arc(centre: Point, radii: Point, start: int, stop: int, power: float = 2.3) -> Stroke:
    """Part of a rounded rectangle, between angles in degrees; clockwise from the right."""
    angle = np.radians(np.linspace(start, stop, 28))
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    bent = np.sign(direction) * np.abs(direction) ** (2 / power)
    points: Stroke = np.array(centre) + bent * radii
    return points


def _curve(start: Point, bend: Point, stop: Point) -> Stroke:
    """A parabola between two points."""
    t = np.linspace(0, 1, 20)[:, None]
    first, middle, last = (np.array(point) for point in (start, bend, stop))
    points: Stroke = (1 - t) ** 2 * first + 2 * t * (1 - t) * middle + t**2 * last
    return points


_SIX = [_arc((0.5, 0.69), (0.5, 0.31), 0, 365), _curve((0.0, 0.7), (0.03, 0.32), (0.66, 0.0))]

STROKES: dict[str, list[Stroke]] = {
    "0": [_arc((0.5, 0.5), (0.5, 0.5), 0, 365, power=2.6)],
    "1": [_line((0.0, 0.27), (0.75, 0.0), (0.75, 1.0))],
    "2": [
        np.concatenate(
            [_arc((0.5, 0.28), (0.48, 0.28), 185, 390), _line((0.0, 1.0), (1.0, 1.0))],
        )
    ],
    "3": [
        _arc((0.45, 0.24), (0.48, 0.24), 190, 450),
        _arc((0.45, 0.73), (0.55, 0.27), 270, 532),
    ],
    "4": [_line((0.6, 0.0), (0.0, 0.72), (1.0, 0.72)), _line((0.72, 0.42), (0.72, 1.0))],
    "5": [
        np.concatenate(
            [
                _line((0.92, 0.0), (0.14, 0.0), (0.09, 0.46)),
                _arc((0.46, 0.68), (0.54, 0.32), 228, 530),
            ]
        )
    ],
    "6": _SIX,
    "7": [_line((0.0, 0.0), (1.0, 0.0), (0.36, 1.0))],
    "8": [
        _arc((0.5, 0.235), (0.44, 0.235), 0, 365),
        _arc((0.5, 0.735), (0.5, 0.265), 0, 365),
    ],
    "9": [1 - stroke for stroke in _SIX],
    ",": [_line((0.5, 0.9), (0.5, 1.1))],
    "t": [_line((0.4, 0.1), (0.4, 1.0), (0.9, 1.0)), _line((0.0, 0.4), (0.9, 0.4))],
    "Z": [_line((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))],
    "O": [_arc((0.5, 0.5), (0.5, 0.5), 0, 365)],
    "N": [_line((0.0, 1.0), (0.0, 0.0), (1.0, 1.0), (1.0, 0.0))],
    "E": [_line((1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)), _line((0.0, 0.5), (0.8, 0.5))],
}
"""Each character's strokes."""
