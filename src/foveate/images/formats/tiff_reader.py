"""TIFF files: tiled or stripped, flat or pyramids, BigTIFF, OME-TIFF, GeoTIFF and COG."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from foveate.errors import DataError
from foveate.extras import require
from foveate.images.formats.damage import check_not_empty, damaged
from foveate.images.formats.layout import Layout
from foveate.images.formats.quiet import quiet
from foveate.images.formats.reader import Reader
from foveate.images.formats.tiff_colours import TiffColours, colours_of
from foveate.images.formats.tiff_jpeg import fast_tiles
from foveate.images.formats.tiff_pages import Pages, find_levels
from foveate.images.formats.tiff_segments import Rows, Segments, Strips, lie_in_rows
from foveate.images.georeference import georeference_of
from foveate.images.sources.source import Source
from foveate.types import UInt8

_COARSEST_SCAN = 20.0
"""Microns per pixel: a coarser resolution is a printer's or a screen's, not a microscope's."""
_UNCOMPRESSED, _OLD_JPEG = 1, 6
_INCH = 2
_RESOLUTION_UNITS = {_INCH: 25400.0, 3: 10000.0}
_OME_UNITS = {"µm": 1.0, "μm": 1.0, "um": 1.0, "nm": 1e-3, "mm": 1e3, "cm": 1e4}


class TiffReader(Reader):
    """A TIFF file, parsed once by tifffile and read by its offsets ever after.

    Raises:
        DataError: for files that are TIFF and not an image as foveate understands it.
        MissingExtraError: without tifffile or, for a compressed file, imagecodecs.
    """

    def __init__(self, source: Source) -> None:
        tifffile = require("tifffile", "to read TIFF files", "tifffile")
        self._source = source
        with quiet("tifffile"), source.file() as file, tifffile.TiffFile(file) as tiff:
            levels = find_levels(tiff, source.name)
            page = levels[0].key
            check_not_empty(source.name, levels[0].size)
            colours = [_colours_of(level, source) for level in levels]
            self._levels = [
                _segments_of(level, colour, source)
                for level, colour in zip(levels, colours, strict=True)
                if colour.channels == colours[0].channels
            ]
            tags = {tag.code: tag.value for tag in page.tags.values() if tag.code > 33000}
            microns = _microns_per_pixel(tiff, page)
        self.layout = Layout(
            levels=tuple(segments.level for segments in self._levels),
            channels=colours[0].channels,
            microns_per_pixel=microns,
            georeference=georeference_of(tags),
        )

    def tile(self, level: int, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Reader.tile`."""
        try:
            return self._levels[level].read(row, column)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # decoders of a dozen formats, each with errors of its own
            part = f"tile ({row}, {column}) of level {level}"
            raise damaged(self._source.name, error, part) from error

    def close(self) -> None:
        """See `Reader.close`."""
        self._source.close()


def _colours_of(pages: Pages, source: Source) -> TiffColours:
    samples = int(pages.key.samplesperpixel) * len(pages.planes)
    return colours_of(pages.key, samples, source.name)


def _segments_of(pages: Pages, colours: TiffColours, source: Source) -> Segments:
    if int(pages.key.compression) == _OLD_JPEG:
        raise NotImplementedError("it has JPEG tiles as TIFF 6.0 first had them")
    if int(pages.key.compression) != _UNCOMPRESSED:
        require("imagecodecs", f"to read the compressed file {source.name}", "imagecodecs")
    if pages.key.is_tiled:
        return fast_tiles(pages, colours, source)
    if lie_in_rows(pages):
        return Rows(pages, colours, source)
    return Strips(pages, colours, source)


def _microns_per_pixel(tiff: Any, page: Any) -> float | None:
    """The size of a pixel as OME-XML, Aperio's description or the resolution tags give it."""
    text = page.description or ""
    if tiff.is_ome:
        size = re.search(r'\bPhysicalSizeX="([\d.eE+-]+)"', text)
        unit = re.search(r'\bPhysicalSizeXUnit="([^"]+)"', text)
        scale = _OME_UNITS.get(unit[1] if unit else "µm")
        return float(size[1]) * scale if size and scale else None
    if tiff.is_svs:
        stated = re.search(r"\bMPP = ([\d.]+)", text)
        return float(stated[1]) if stated else None
    return _from_resolution(page)


def _from_resolution(page: Any) -> float | None:
    pixels = page.tags.valueof(282)  # XResolution, a fraction of pixels to a unit
    microns = _RESOLUTION_UNITS.get(int(page.tags.valueof(296, default=_INCH)))
    if microns is None or not isinstance(pixels, tuple) or not all(pixels):
        return None
    size = microns * pixels[1] / pixels[0]
    return size if size <= _COARSEST_SCAN else None
