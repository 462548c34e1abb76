"""How a camera sees a sign: from a side, in some light, out of focus, moving, with noise.

Light is added up and blurred as light, and only then clipped and made brighter for the eye; so a
sign in the sun turns white and orange, and one against the sky turns black, as in photographs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from foveate.datasets.painting.signs import CANVAS, DIAMETER

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

GAMMA = 1.7
"""Pixels are light to the power of 1 / GAMMA."""
POLE = 0.5
"""How far a pole goes on below a sign, in its diameters."""


@dataclass(frozen=True)
class Sprite:
    """A small picture with soft edges.

    Attributes:
        pixels: red, green, blue and how much of them covers what is below.
        centre: (y, x) of the sign in it.
    """

    pixels: Bytes
    centre: tuple[float, float]


@dataclass(frozen=True)
class Shot:
    """What the signs on one post have in common.

    Attributes:
        light: how bright white is in each channel; above 1 is clipped.
        haze: light that is added everywhere.
        slope: change of the light across a sign, down and right.
        view: what the camera's point of view does to (x, y) on a face.
        blur: standard deviation in pixels.
        motion: how far things move in an exposure, in pixels, down and right.
        sharpening: how much the camera makes edges stronger.
        fringe: how far red and blue lie apart, in pixels.
        noise: standard deviation, in bytes.
    """

    light: Floats
    haze: float
    slope: Floats
    view: Floats
    blur: float
    motion: Floats
    sharpening: float
    fringe: Floats
    noise: float

    @staticmethod
    def draw(surroundings: Bytes, photo: Floats, diameter: float, rng: np.random.Generator) -> Shot:
        """Draw what could be here.

        Args:
            surroundings: pixels (c, h, w) around the place.
            photo: typical light of the whole photograph, for each channel.
            diameter: of the signs, in pixels.
            rng: where chance comes from.
        """
        # Between the light of the place and that of the photograph: the sky is no sign's light.
        level = 0.3 * np.log(typical_light(surroundings).mean()) + 0.7 * np.log(photo.mean())
        bright = np.clip(np.exp(level + rng.normal(0.8, 1.0)), 0.012, 1.8)
        cast = (photo / photo.mean()) ** rng.uniform(0, 0.8) * np.exp(rng.normal(0, 0.06, 3))
        if rng.random() < 0.3:  # dusk, or the shade under a blue sky
            cast *= (1.0, 1 + 0.1 * rng.random(), 1 + 0.5 * rng.random())
        yaw = np.cos(min(abs(rng.normal(0, 0.25)), 0.8))
        angle, shear = rng.normal(0, 0.05), rng.normal(0, 0.04)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return Shot(
            light=bright * cast,
            haze=bright * rng.uniform(0, 0.05) + 0.003 * rng.random(),
            slope=rng.normal(0, 0.12, 2),
            view=turn @ np.array([[yaw, shear], [0.0, 1.0]]),
            blur=np.exp(rng.normal(-0.85, 0.4)) + max(0.0, rng.normal(0, 0.013)) * diameter,
            motion=np.abs(rng.normal(0, (0.05, 0.1))) * diameter * (rng.random(2) < (0.25, 0.45)),
            sharpening=max(0.0, rng.normal(0.4, 0.5)),
            fringe=rng.normal(0, 0.2, 2),
            noise=rng.uniform(0.5, 5.0),
        )


def take_snapshot(
    face: PillowImage.Image, diameter: float, shot: Shot, pole: bool, rng: np.random.Generator
) -> Sprite:
    """What becomes of a face.

    Args:
        face: the sign, as `signs` draws it.
        diameter: of the sign in the photograph, in pixels.
        shot: the conditions.
        pole: whether a pole goes on below the sign.
        rng: where noise, shade and leaves come from.
    """
    if pole:
        face = _with_pole(face, rng)
    shrink = diameter / DIAMETER
    # Turned at twice the size that is wanted, which is faster than in full.
    small = _resized(_seen_from(_resized(face, 2 * shrink), 2 * shrink, shot.view), 0.5)
    margin = int(np.ceil(2.5 * shot.blur + shot.motion.max() / 2)) + 1
    light = np.asarray(small, dtype=np.float64) / 255
    light[..., :3] *= light[..., 3:]
    light = np.pad(light, ((margin, margin), (margin, margin), (0, 0)))
    light[..., :3] *= _shade(light.shape[:2], shot, rng)[..., None]
    if rng.random() < 0.08:
        light *= _leaves(light.shape[:2], diameter, rng)[..., None]
    light = _blurred(light, shot)
    cover = light[..., 3:]
    colours = light[..., :3] / np.maximum(cover, 1e-3) * shot.light + shot.haze
    pixels = 255 * np.clip(colours, 0, None) ** (1 / GAMMA)
    pixels += shot.sharpening * (pixels - _filtered(pixels, [_bell(1.2), _bell(1.2)]))
    noise = rng.normal(0, 1.6 * shot.noise, pixels.shape)
    pixels += _filtered(noise, [_bell(0.5), _bell(0.5)])
    whole = np.concatenate([pixels, 255 * cover], axis=-1)
    half = CANVAS / 2 * shrink + margin
    return Sprite(np.clip(whole.round(), 0, 255).astype(np.uint8), (half, half))


def to_light(pixels: Bytes) -> Floats:
    """The light that bytes stand for, from 0 to 1."""
    return (pixels / 255.0) ** GAMMA


def typical_light(pixels: Bytes) -> Floats:
    """The geometric mean of the light in each channel: bright skies count little."""
    light: Floats = np.exp(np.log(to_light(pixels).reshape(3, -1) + 3e-3).mean(axis=1))
    return light


def _with_pole(face: PillowImage.Image, rng: np.random.Generator) -> PillowImage.Image:
    grey = round(rng.uniform(30, 110))
    wide = DIAMETER * rng.uniform(0.05, 0.12)
    whole = PillowImage.new("RGBA", (CANVAS, CANVAS + round(POLE * DIAMETER)))
    middle = CANVAS / 2
    box = (round(middle - wide / 2), CANVAS // 2, round(middle + wide / 2), whole.height)
    whole.paste((grey, grey, grey, 255), box)
    whole.alpha_composite(face)
    return whole


def _resized(face: PillowImage.Image, scale: float) -> PillowImage.Image:
    size = (max(3, round(face.width * scale)), max(3, round(face.height * scale)))
    return face.resize(size, PillowImage.Resampling.BOX)


def _seen_from(face: PillowImage.Image, scale: float, view: Floats) -> PillowImage.Image:
    """The face in perspective, its middle where it was."""
    back = np.linalg.inv(view)
    middle = np.full(2, scale * CANVAS / 2)
    shift = middle - back @ middle
    matrix = (*back[0], shift[0], *back[1], shift[1])
    affine, bilinear = PillowImage.Transform.AFFINE, PillowImage.Resampling.BILINEAR
    return face.transform(face.size, affine, matrix, bilinear)


def _shade(size: tuple[int, int], shot: Shot, rng: np.random.Generator) -> Floats:
    """How much of the light falls where."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in size), indexing="ij")
    shade: Floats = np.clip(1 + shot.slope[0] * y + shot.slope[1] * x, 0.3, 1.7)
    if rng.random() < 0.12:  # the shadow of something large
        angle = rng.uniform(0, 2 * np.pi)
        dark = np.cos(angle) * x + np.sin(angle) * y > rng.uniform(-0.5, 0.7)
        shade[dark] *= rng.uniform(0.3, 0.7)
    return shade


def _leaves(size: tuple[int, int], diameter: float, rng: np.random.Generator) -> Floats:
    """1 where nothing hangs before the sign."""
    y, x = np.mgrid[: size[0], : size[1]]
    clear = np.ones(size)
    for _ in range(rng.integers(1, 4)):
        angle = rng.uniform(0, np.pi)
        across = np.cos(angle) * (x - rng.uniform(0, size[1])) + np.sin(angle) * (
            y - rng.uniform(0, size[0])
        )
        clear[np.abs(across) < diameter * rng.uniform(0.01, 0.06)] = 0
    return clear


def _blurred(light: Floats, shot: Shot) -> Floats:
    blurred = _filtered(light, [_bell(shot.blur, length) for length in shot.motion])
    for channel, far in zip((0, 2), shot.fringe, strict=True):
        near = np.array([max(0.0, -far), 1 - abs(far), max(0.0, far)])
        blurred[..., channel] = _filtered(blurred[..., channel], [near])
    return blurred


def _bell(deviation: float, length: float = 0.0) -> Floats:
    """Weights of a Gaussian that moves over a length."""
    reach = int(np.ceil(2.5 * deviation + length / 2))
    places = np.arange(-reach, reach + 1)[:, None] - np.linspace(-0.5, 0.5, 9) * length
    heights = np.exp(-0.5 * (places / deviation) ** 2).mean(axis=1)
    weights: Floats = heights / heights.sum()
    return weights


def _filtered(pixels: Floats, kernels: list[Floats]) -> Floats:
    """Pixels filtered along their first axes, each with a kernel of its own."""
    for axis, kernel in enumerate(kernels):
        count, reach = pixels.shape[axis], len(kernel) // 2
        edges = np.clip(np.arange(-reach, count + reach), 0, count - 1)
        padded = np.moveaxis(pixels.take(edges, axis), axis, 0)
        total = kernel[0] * padded[:count]
        for first, weight in enumerate(kernel[1:], start=1):
            total += weight * padded[first : first + count]
        pixels = np.moveaxis(total, 0, axis)
    return pixels
