"""The faces of road signs, drawn large: limits, and signs that are easily taken for them.

Colours say how much light a face throws back, from 0 to 255, before any camera sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from foveate.datasets.painting.numerals import draw_text

Colour = tuple[int, int, int, int]

DIAMETER = 240
"""Of a face, in pixels; it is made smaller afterwards."""
MARGIN = 14
"""Empty pixels around a face."""
CANVAS = DIAMETER + 2 * MARGIN

BLACK: Colour = (11, 11, 12, 255)
GREY: Colour = (95, 97, 99, 255)
WHITE: Colour = (225, 225, 222, 255)
YELLOW: Colour = (225, 140, 8, 255)
BLUE: Colour = (6, 36, 120, 255)
RED: Colour = (84, 14, 12, 255)

_CENTRE = CANVAS / 2
_RADIUS = DIAMETER / 2
_TEXTS = ("20", "40", "90", "10", "5", "7,5t", "2,8", "5,5t", "3,5")


@dataclass(frozen=True)
class Style:
    """What differs from country to country.

    Attributes:
        disc: colour inside a red ring.
        zone: a limit that also stands on boards of zones, or none.
    """

    disc: Colour
    zone: str | None = None


GERMAN = Style(WHITE, zone="30")
SWEDISH = Style(YELLOW)


def draw_limit(limit: str, style: Style, rng: np.random.Generator) -> PillowImage.Image:
    """The sign of a speed limit."""
    face, draw = _canvas()
    if limit == style.zone and rng.random() < 0.15:
        edge = MARGIN * 0.25
        draw.rectangle((edge, 0, CANVAS - edge, CANVAS), WHITE, BLACK, round(rng.uniform(2, 6)))
        size, pen = (0.17 * DIAMETER, 0.13 * DIAMETER), 0.035 * DIAMETER
        draw_text(draw, "ZONE", (_CENTRE, CANVAS * 0.875), size, pen, BLACK)
        _draw_limit(draw, limit, style, rng, (_CENTRE, CANVAS * 0.41), 0.72 * _RADIUS)
    else:
        _draw_limit(draw, limit, style, rng, (_CENTRE, _CENTRE), _RADIUS)
    return face


def draw_other(
    limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> PillowImage.Image:
    """A sign that says nothing about limits, or the end of one.

    Args:
        limits: what no red ring may show here.
        style: the country's.
        rng: where chance comes from.
    """
    face, draw = _canvas()
    _OTHERS[rng.integers(len(_OTHERS))](draw, limits, style, rng)
    return face


def draw_plate(rng: np.random.Generator) -> PillowImage.Image:
    """A plate with something black on it, as it hangs below a sign."""
    face, draw = _canvas()
    top = CANVAS * (1 - rng.uniform(0.35, 0.75))
    draw.rectangle((MARGIN, top, CANVAS - MARGIN, CANVAS - MARGIN), WHITE, BLACK, 4)
    _draw_blob(draw, rng, (_CENTRE, (top + CANVAS - MARGIN) / 2), 0.3 * _RADIUS, BLACK)
    return face


def _canvas() -> tuple[PillowImage.Image, ImageDraw.ImageDraw]:
    face = PillowImage.new("RGBA", (CANVAS, CANVAS))
    return face, ImageDraw.Draw(face)


def _draw_limit(
    draw: ImageDraw.ImageDraw,
    text: str,
    style: Style,
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius: float,
) -> None:
    _draw_ring(draw, style, rng, centre, radius)
    _draw_number(draw, text, rng, centre, radius, BLACK)


def _draw_ring(
    draw: ImageDraw.ImageDraw,
    style: Style,
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius: float,
) -> None:
    rim = radius * rng.uniform(0.94, 0.985)
    fading = rng.uniform(0, 1) ** 3
    red = tuple(round(v + fading * 0.08 * (w - v)) for v, w in zip(RED, WHITE, strict=True))
    draw.circle(centre, radius, style.disc)
    draw.circle(centre, rim, red)
    draw.circle(centre, rim - radius * rng.uniform(0.19, 0.27), style.disc)


def _draw_number(
    draw: ImageDraw.ImageDraw,
    text: str,
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius: float,
    colour: Colour,
) -> None:
    count = len(text)
    height = radius * (rng.uniform(0.78, 0.96) if count <= 2 else rng.uniform(0.72, 0.88))
    width = height * (rng.uniform(0.48, 0.6) if count <= 2 else rng.uniform(0.42, 0.5))
    pen = height * (rng.uniform(0.13, 0.185) if count <= 2 else rng.uniform(0.12, 0.165))
    room = 1.32 * radius  # where the disc is wide enough for a line of text
    squeeze = min(1.0, room / (count * (width + 0.55 * pen)))
    draw_text(draw, text, centre, (height, width * squeeze), pen * squeeze**0.5, colour)


def _draw_blob(
    draw: ImageDraw.ImageDraw,
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius: float,
    colour: Colour,
) -> None:
    """Something like a car, a person or an arrow, from far away."""
    for _ in range(rng.integers(1, 4)):
        x, y = np.array(centre) + rng.uniform(-0.5, 0.5, 2) * radius
        w, h = rng.uniform(0.15, 0.6, 2) * radius
        box = (x - w, y - h, x + w, y + h)
        (draw.rectangle if rng.random() < 0.5 else draw.ellipse)(box, colour)


def _ring_with_text(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    texts = [text for text in _TEXTS if text not in limits]
    _draw_limit(draw, texts[rng.integers(len(texts))], style, rng, (_CENTRE, _CENTRE), _RADIUS)


def _ring_with_picture(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    centre = (_CENTRE, _CENTRE)
    _draw_ring(draw, style, rng, centre, _RADIUS)
    what = rng.random()
    if what < 0.4:  # cars side by side: no overtaking
        for side, colour in ((-1, RED), (1, BLACK)):
            _draw_blob(draw, rng, (_CENTRE + side * 0.3 * _RADIUS, _CENTRE), 0.4 * _RADIUS, colour)
    elif what < 0.8:
        _draw_blob(draw, rng, centre, 0.6 * _RADIUS, BLACK)


def _end_of_limit(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    draw.circle((_CENTRE, _CENTRE), _RADIUS, WHITE, BLACK, round(rng.uniform(3, 8)))
    if rng.random() < 0.7 and limits:
        text = limits[rng.integers(len(limits))]
        _draw_number(draw, text, rng, (_CENTRE, _CENTRE), _RADIUS, GREY)
    for offset in np.linspace(-0.24, 0.24, 5) * _RADIUS:
        reach = 0.64 * _RADIUS
        ends = (_CENTRE - reach + offset, _CENTRE + reach + offset)
        draw.line((ends[0], ends[1], ends[1], ends[0]), BLACK, round(rng.uniform(6, 12)))


def _no_entry(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    draw.circle((_CENTRE, _CENTRE), _RADIUS, RED, WHITE, 6)
    half, high = 0.75 * _RADIUS, 0.16 * _RADIUS
    box = (_CENTRE - half, _CENTRE - high, _CENTRE + half, _CENTRE + high)
    draw.rectangle(box, WHITE)


def _triangle(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    turn = 90 * (-1 if rng.random() < 0.6 else 1)
    y = _CENTRE - 0.25 * _RADIUS * np.sign(turn)
    for radius, colour in ((1.1, WHITE), (1.05, RED), (0.66, style.disc)):
        draw.regular_polygon((_CENTRE, y, radius * _RADIUS), 3, 0 if turn < 0 else 180, colour)
    if turn < 0:
        _draw_blob(draw, rng, (_CENTRE, y), 0.35 * _RADIUS, BLACK)


def _blue_disc(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    draw.circle((_CENTRE, _CENTRE), _RADIUS, BLUE, WHITE, 6)
    _draw_blob(draw, rng, (_CENTRE, _CENTRE), 0.6 * _RADIUS, WHITE)


def _diamond(
    draw: ImageDraw.ImageDraw, limits: tuple[str, ...], style: Style, rng: np.random.Generator
) -> None:
    for radius, colour in ((1.0, WHITE), (0.7, YELLOW)):
        draw.regular_polygon((_CENTRE, _CENTRE, radius * _RADIUS), 4, 45, colour)


_Draw = Callable[[ImageDraw.ImageDraw, tuple[str, ...], Style, np.random.Generator], None]
_OTHERS: tuple[_Draw, ...] = (
    _ring_with_text,
    _ring_with_picture,
    _ring_with_picture,
    _end_of_limit,
    _end_of_limit,
    _no_entry,
    _triangle,
    _blue_disc,
    _diamond,
)
"""What is easily taken for a limit comes more often."""
