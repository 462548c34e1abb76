"""How the samples of a TIFF page become colours: its tags, read by the rule of `colours`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.errors import DataError
from foveate.images.formats.colours import cmyk_to_rgb, over_white, scale_to_bytes
from foveate.types import Num, UInt8

_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _PALETTE, _MASK, _CMYK, _YCBCR = range(7)
_USED = {_WHITE_IS_ZERO: 1, _BLACK_IS_ZERO: 1, _RGB: 3, _MASK: 1, _CMYK: 4, _YCBCR: 3}
"""How many samples of each kind are colour."""
_JPEGS = (6, 7, 34892, 33007)
_STATED_MAXIMA = (50717, 341, 281)
"""WhiteLevel, SMaxSampleValue and MaxSampleValue."""


@dataclass(frozen=True)
class TiffColours:
    """How the samples of a page become colours.

    Attributes:
        kind: what the samples mean, by TIFF's number.
        used: how many samples are colour, the first ones.
        maximum: the sample that becomes 255.
        alpha: which sample tells how opaque a pixel is, if any.
        premultiplied: whether the colours are already multiplied by it.
        palette: the colour of each sample.
    """

    kind: int
    used: int
    maximum: int
    alpha: int | None = None
    premultiplied: bool = False
    palette: UInt8[np.ndarray, "values 3"] | None = None

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour."""
        return 1 if self.used == 1 and self.palette is None else 3

    def __call__(self, samples: Num[np.ndarray, "h w s"]) -> UInt8[np.ndarray, "h w c"]:
        """The colours of a part of the page."""
        if self.palette is not None:
            return np.take(self.palette, samples[..., 0], axis=0)
        colours = scale_to_bytes(samples[..., : self.used], self.maximum)
        if self.kind == _WHITE_IS_ZERO:
            colours = 255 - colours
        if self.kind == _CMYK:
            colours = cmyk_to_rgb(colours)
        if self.alpha is not None:
            opaque = scale_to_bytes(samples[..., self.alpha], self.maximum)
            colours = over_white(colours, opaque, self.premultiplied)
        return np.ascontiguousarray(colours)


def colours_of(page: Any, samples: int, name: str) -> TiffColours:
    """Read how a page of tifffile is coloured.

    Args:
        page: the page.
        samples: how many samples each pixel has, over all planes.
        name: the file.

    Raises:
        DataError: for floats, and for samples that are neither grey nor colour.
        NotImplementedError: for what tifffile does not decode; another backend may.
    """
    kind = int(page.photometric)
    if page.dtype is None or page.dtype.kind not in "bui":
        raise DataError(
            f"cannot open {name}: its samples are {page.dtype or 'of an unknown type'}, for which "
            "there is no white; scale them to 8 or 16 bits"
        )
    known = kind in _USED or kind == _PALETTE
    if not known or (kind == _YCBCR and int(page.compression) not in _JPEGS):
        raise NotImplementedError(f"its colours are {getattr(page.photometric, 'name', kind)}")
    maximum = maximum_of(page)
    if kind == _PALETTE and page.colormap is not None:
        return TiffColours(kind, 1, maximum, palette=_palette_of(page.colormap))
    used = _USED.get(kind, 1)
    extra = [int(sample) for sample in page.extrasamples]
    if used == 1 and samples == 3 and not any(extra):  # three bands that are not said to be colour
        used = 3
    alpha = next((i for i, sample in enumerate(extra) if sample in (1, 2)), None)
    if samples < used or (used == 1 and samples > 1 and alpha is None):
        raise DataError(
            f"cannot open {name}: its pixels have {samples} samples of the kind "
            f"{getattr(page.photometric, 'name', kind)}, and grey, RGB, a palette and CMYK are "
            "understood; convert it to one of them"
        )
    if alpha is None:
        return TiffColours(kind, used, maximum)
    return TiffColours(kind, used, maximum, samples - len(extra) + alpha, extra[alpha] == 1)


def maximum_of(page: Any) -> int:
    """The sample that means full brightness: what the file states, or all bits set."""
    if page.dtype.kind == "b":
        return 1
    bits = page.bitspersample if isinstance(page.bitspersample, int) else max(page.bitspersample)
    largest: int = 2 ** (bits - (page.dtype.kind == "i")) - 1
    if bits <= 8:
        return largest
    for code in _STATED_MAXIMA:
        stated = page.tags.valueof(code)
        if stated is not None:
            value = float(max(stated) if isinstance(stated, tuple) else _number(stated))
            if 1 <= value <= largest:
                return round(value)
    significant = re.search(r'<Pixels[^>]*\bSignificantBits="(\d+)"', page.description or "")
    if significant and 1 <= int(significant[1]) <= bits:
        return int(2 ** int(significant[1])) - 1
    return largest


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _palette_of(colormap: Num[np.ndarray, "3 values"]) -> UInt8[np.ndarray, "values 3"]:
    # Some writers store palettes in 8 bits, though TIFF says 16.
    maximum = 65535 if colormap.max() > 255 else 255
    count = colormap.shape[1]
    palette = np.zeros((256 if count <= 256 else 65536, 3), np.uint8)
    palette[:count] = scale_to_bytes(colormap.astype(np.uint16), maximum).T
    return palette
