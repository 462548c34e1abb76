"""Slides of the scanners' own formats, by OpenSlide: NDPI, MRXS, SCN, BIF, DICOM and others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from foveate.extras import require
from foveate.images.formats.colours import over_white
from foveate.images.formats.damage import check_not_empty, damaged
from foveate.images.formats.layout import Layout, Level
from foveate.images.formats.reader import Reader
from foveate.images.sources.location import Location
from foveate.types import Size, UInt8

_TILE = 512
"""The side of tiles where a slide's own are strips, too large or not known."""
_SIDES = range(64, 2049)
_CACHE_BYTES = 2**26
"""What OpenSlide keeps of its own tiles, which need not lie as ours do, for all slides together."""

_cache: Any = None


class OpenSlideReader(Reader):
    """A slide that OpenSlide reads.

    Where nothing was scanned, it is white.

    Raises:
        MissingExtraError: without OpenSlide.
    """

    def __init__(self, location: Location) -> None:
        openslide = require_openslide()
        self._name = location.name
        self._slide = openslide.OpenSlide(location.path)
        self._slide.set_cache(_shared_cache(openslide))
        properties = self._slide.properties
        levels = [
            Level((height, width), _tile_of(properties, i))
            for i, (width, height) in enumerate(self._slide.level_dimensions)
        ]
        check_not_empty(location.name, levels[0].size)
        self._downsamples = self._slide.level_downsamples
        self.layout = Layout(tuple(levels), 3, microns_per_pixel=_microns_per_pixel(properties))

    def tile(self, level: int, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Reader.tile`."""
        (height, width), (rows, columns) = (
            self.layout.levels[level].size,
            self.layout.levels[level].tile,
        )
        y, x = row * rows, column * columns
        # OpenSlide wants every corner in pixels of level 0.
        corner = [round(place * self._downsamples[level]) for place in (x, y)]
        try:
            region = self._slide.read_region(
                (corner[0], corner[1]), level, (min(columns, width - x), min(rows, height - y))
            )
        except Exception as error:
            part = f"tile ({row}, {column}) of level {level}"
            raise damaged(self._name, error, part) from error
        pixels = np.asarray(region)
        return np.ascontiguousarray(over_white(pixels[..., :3], pixels[..., 3]))

    def close(self) -> None:
        """See `Reader.close`."""
        self._slide.close()


def require_openslide() -> Any:
    """OpenSlide's Python package.

    Raises:
        MissingExtraError: if it or its library is not installed.
    """
    return require("openslide", "to read slides", "openslide-python openslide-bin")


def _shared_cache(openslide: Any) -> Any:
    global _cache
    if _cache is None:
        _cache = openslide.OpenSlideCache(_CACHE_BYTES)
    return _cache


def _forget() -> None:
    """Leave the cache to the parent of a fork; it is not closed, as its slides still hold it."""
    global _cache
    _cache = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _tile_of(properties: Mapping[str, str], level: int) -> Size:
    sides = [
        int(properties.get(f"openslide.level[{level}].tile-{side}", 0))
        for side in ("height", "width")
    ]
    if all(side in _SIDES for side in sides):
        return sides[0], sides[1]
    return _TILE, _TILE


def _microns_per_pixel(properties: Mapping[str, str]) -> float | None:
    stated = properties.get("openslide.mpp-x")
    try:
        return float(stated) if stated else None
    except ValueError:
        return None
