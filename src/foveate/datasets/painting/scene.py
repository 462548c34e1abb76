"""What is painted into a photograph of a road, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from foveate.datasets.painting.overlay import Box, Laid
from foveate.datasets.painting.signs import Style, draw_limit, draw_other, draw_plate
from foveate.datasets.painting.snapshot import Shot, Sprite, take_snapshot, typical_light
from foveate.types import Size

SMALLEST, LARGEST = 16.0, 125.0
"""Diameters of signs, in pixels."""

_TYPICAL = 36.0
_SPREAD = 0.45
_OF_HEIGHT = 0.2  # the largest share of the photograph's height: made-up ones may be tiny


@dataclass(frozen=True)
class Post:
    """Signs above each other.

    Attributes:
        centre: (y, x) of the first, in pixels.
        diameter: of each, in pixels.
        faces: the signs, from the first downwards.
        above: one above the first.
    """

    centre: tuple[float, float]
    diameter: float
    faces: list[PillowImage.Image]
    above: PillowImage.Image | None

    @property
    def box(self) -> Box:
        """(y0, x0, y1, x1) around the first."""
        (y, x), half = self.centre, self.diameter / 2
        return y - half, x - half, y + half, x + half


@dataclass(frozen=True)
class Scene:
    """The posts of a photograph.

    Attributes:
        posts: those that show something else, and then those that show the limit.
        decisive: how many of the last show the limit.
        rng: what light and noise are drawn from.
    """

    posts: list[Post]
    decisive: int
    rng: np.random.Generator

    @property
    def truth(self) -> list[Box]:
        """Boxes (y0, x0, y1, x1) around the signs of the limit."""
        return [post.box for post in self.posts[len(self.posts) - self.decisive :]]

    def paint(self, photo: NDArray[np.uint8]) -> list[Laid]:
        """The signs as they would look in a photograph (3, H, W)."""
        light = typical_light(photo[:, ::8, ::8])
        return [laid for post in self.posts for laid in self._paint_post(post, photo, light)]

    def _paint_post(
        self, post: Post, photo: NDArray[np.uint8], light: NDArray[np.float64]
    ) -> list[Laid]:
        (y, x), rng = post.centre, self.rng
        reach = round(post.diameter) + 1
        rows = slice(max(0, round(y) - reach), round(y) + reach)
        columns = slice(max(0, round(x) - reach), round(x) + reach)
        shot = Shot.draw(photo[:, rows, columns], light, post.diameter, rng)
        pole = rng.random() < 0.6
        step = post.diameter * rng.uniform(1.0, 1.1)
        laid = []
        if post.above is not None:
            sprite = take_snapshot(post.above, post.diameter, shot, pole, rng)
            laid.append(_lie(sprite, (y - step, x), photo.shape[1:]))
        for number, face in enumerate(post.faces):
            sprite = take_snapshot(face, post.diameter, shot, pole, rng)
            laid.append(_lie(sprite, (y + number * step, x), photo.shape[1:]))
        return [one for one in laid if one is not None]


def plan_scene(
    limit: str | None, limits: tuple[str, ...], size: Size, style: Style, rng: np.random.Generator
) -> Scene:
    """Choose what to paint.

    Args:
        limit: what the scene shows; None for no limit.
        limits: all limits that are told apart.
        size: height and width of the photograph.
        style: what signs look like.
        rng: where chance comes from; it is drawn from later too.
    """
    first = _place(size, rng)
    posts = []
    for _ in range(rng.choice(3, p=(0.1, 0.6, 0.3) if limit is None else (0.65, 0.27, 0.08))):
        faces = [draw_other(limits, style, rng)]
        posts.append(Post(_place(size, rng), _diameter(size, rng), faces, None))
    decisive = 0
    if limit is not None:
        diameter = _diameter(size, rng)
        places = [first]
        other = (first[0] + rng.normal(0, 0.3) * diameter, size[1] - first[1])
        if rng.random() < 0.25 and abs(other[1] - first[1]) > 2 * diameter:
            places.append(other)  # the same sign on both sides of the road
        decisive = len(places)
        below = rng.random()
        for place in places:
            faces = [draw_limit(limit, style, rng)]
            if below < 0.15:
                faces.append(draw_plate(rng))
            elif below < 0.35:
                faces.append(draw_other(limits, style, rng))
            above = draw_other(limits, style, rng) if rng.random() < 0.15 else None
            posts.append(Post(place, diameter * np.exp(rng.normal(0, 0.08)), faces, above))
    return Scene(posts, decisive, rng)


def _diameter(size: Size, rng: np.random.Generator) -> float:
    drawn = _TYPICAL * np.exp(_SPREAD * rng.standard_normal())
    return float(min(np.clip(drawn, SMALLEST, LARGEST), _OF_HEIGHT * size[0]))


def _place(size: Size, rng: np.random.Generator) -> tuple[float, float]:
    """Mostly beside the road and below the middle, and now and then anywhere."""
    if rng.random() < 0.2:
        y, x = rng.uniform(0.05, 0.85), rng.uniform(0.02, 0.98)
    else:
        y = np.clip(rng.normal(0.56, 0.12), 0.1, 0.8)
        x = rng.beta(2.2, 1.3) if rng.random() < 0.7 else rng.beta(1.3, 2.2)
        x = 0.02 + 0.96 * x
    return float(y * size[0]), float(x * size[1])


def _lie(sprite: Sprite, centre: tuple[float, float], size: tuple[int, ...]) -> Laid | None:
    """A sprite as far as it lies inside a photograph of a size; None where none of it does."""
    pixels = sprite.pixels
    top, left = (round(centre[axis] - sprite.centre[axis]) for axis in (0, 1))
    rows = slice(max(0, -top), max(0, min(pixels.shape[0], size[0] - top)))
    columns = slice(max(0, -left), max(0, min(pixels.shape[1], size[1] - left)))
    inside = np.ascontiguousarray(pixels[rows, columns])
    return Laid(inside, (max(0, top), max(0, left))) if inside.size else None
