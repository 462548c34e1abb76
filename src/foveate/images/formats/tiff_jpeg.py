"""JPEG tiles of TIFF files, the most frequent kind of slide, by the fastest decoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from foveate.errors import MissingExtraError
from foveate.extras import require
from foveate.images.formats.tiff_colours import TiffColours
from foveate.images.formats.tiff_pages import Pages
from foveate.images.formats.tiff_segments import Tiles
from foveate.images.sources.source import Source
from foveate.types import UInt8

_JPEG, _RGB = 7, 2
_START = b"\xff\xd8"
_ADOBE_RGB = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
"""A marker which says that the three components are not YCbCr but RGB, as in Aperio's slides."""


class JpegTiles(Tiles):
    """Tiles of 8-bit grey or colour JPEG, decoded exactly as libjpeg's defaults do.

    Raises:
        MissingExtraError: without simplejpeg; `Tiles` reads them too.
    """

    def __init__(self, pages: Pages, colours: TiffColours, source: Source) -> None:
        super().__init__(pages, colours, source)
        self._simplejpeg = require("simplejpeg", "to read JPEG tiles fast", "simplejpeg")
        self._colourspace = "GRAY" if colours.channels == 1 else "RGB"
        marker = _ADOBE_RGB if int(pages.key.photometric) == _RGB else b""
        tables = pages.key.jpegtables or _START + b"\xff\xd9"
        self._head = tables[:-2] + marker  # the tables end with a marker of two bytes

    def read(self, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Segments.read`."""
        data = self._stored.bytes(row * self._columns + column)
        if data[:2] != _START:
            return super().read(row, column)
        try:
            pixels: np.ndarray = self._simplejpeg.decode_jpeg(
                self._head + data[2:], self._colourspace, fastdct=False, fastupsample=False
            )
        except ValueError as error:
            if "Premature end" in str(error):
                raise
            return super().read(row, column)  # what is merely odd, libjpeg's other users take
        return pixels

    @staticmethod
    def fit(pages: Pages) -> bool:
        """Whether a page is stored in such tiles."""
        page: Any = pages.key
        return bool(
            page.is_tiled
            and int(page.compression) == _JPEG
            and page.bitspersample == 8
            and page.planarconfig == 1
            and not page.extrasamples
            and page.jpegheader is None  # NDPI, whose tiles are no files of their own
            and (page.samplesperpixel, int(page.photometric)) in {(1, 1), (3, 2), (3, 6)}
        )


def fast_tiles(pages: Pages, colours: TiffColours, source: Source) -> Tiles:
    """The tiles of a page, by the fastest decoder that is installed."""
    if JpegTiles.fit(pages):
        try:
            return JpegTiles(pages, colours, source)
        except MissingExtraError:
            pass
    return Tiles(pages, colours, source)
