"""The one rule by which the samples of any file become uint8 colours.

1. Grey is 1 channel and colour is 3. A palette, CMYK and every other colour space is colour:
   red, green and blue of CMYK are (255 - c)(255 - k) / 255.
2. Samples of more or fewer than 8 bits are scaled: round(255 v / maximum), at most 255 and at least
   0, where `maximum` is what the file states, or else the largest number its samples can hold.
3. What is transparent shows white: c a + 255 (1 - a).
4. Colour becomes grey, where that is asked for, as (299 r + 587 g + 114 b) / 1000; grey becomes
   colour by repetition.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from foveate.types import Num, UInt8


def scale_to_bytes(samples: Num[np.ndarray, "..."], maximum: int) -> UInt8[np.ndarray, "..."]:
    """Whole numbers as bytes: 0 stays 0, `maximum` and more becomes 255.

    Example:
        >>> scale_to_bytes(np.array([0, 2048, 4095, 5000], np.uint16), 4095)
        array([  0, 128, 255, 255], dtype=uint8)
    """
    if samples.dtype == np.uint8 and maximum == 255:
        return samples
    if samples.dtype in (np.uint8, np.uint16):
        scaled: np.ndarray = np.take(_table(maximum), samples)
        return scaled
    clipped: np.ndarray = np.clip(samples, 0, maximum).astype(np.float64)
    return np.floor(clipped * (255 / maximum) + 0.5).astype(np.uint8)


@lru_cache(maxsize=16)
def _table(maximum: int) -> UInt8[np.ndarray, "65536"]:
    values = np.arange(2**16, dtype=np.int64)
    return np.minimum((255 * values + maximum // 2) // maximum, 255).astype(np.uint8)


def over_white(
    colours: UInt8[np.ndarray, "h w c"],
    alpha: UInt8[np.ndarray, "h w"],
    premultiplied: bool = False,
) -> UInt8[np.ndarray, "h w c"]:
    """Colours as they look on a white ground.

    Args:
        colours: the colours.
        alpha: how opaque they are, 255 for fully.
        premultiplied: whether the colours are already multiplied by alpha.
    """
    if alpha.min() == 255:
        return colours
    opaque = alpha[..., None].astype(np.uint16)
    shown = colours.astype(np.uint16)
    if not premultiplied:
        shown = (shown * opaque + 127) // 255
    over: np.ndarray = np.minimum(shown + (255 - opaque), 255)
    return over.astype(np.uint8)


def cmyk_to_rgb(samples: UInt8[np.ndarray, "h w 4"]) -> UInt8[np.ndarray, "h w 3"]:
    """Ink to light, without a colour profile."""
    light = 255 - samples.astype(np.uint16)
    return ((light[..., :3] * light[..., 3:] + 127) // 255).astype(np.uint8)


def to_channels(colours: UInt8[np.ndarray, "h w c"], channels: int) -> UInt8[np.ndarray, "h w _"]:
    """Colour as grey, if that is asked for; grey stays one channel, to be repeated when copied."""
    if channels >= colours.shape[2]:
        return colours
    red, green, blue = (colours[..., i].astype(np.uint32) for i in range(3))
    # The weights 0.299, 0.587 and 0.114 as Pillow writes them, so that all files agree.
    grey = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return grey.astype(np.uint8)[..., None]
