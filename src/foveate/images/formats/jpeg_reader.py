"""JPEG files, by simplejpeg: fast, and at an eighth of their size if that is enough."""

from __future__ import annotations

import numpy as np

from foveate.extras import require
from foveate.images.formats.damage import check_decodable, check_not_empty
from foveate.images.formats.layout import Layout, Level
from foveate.images.formats.pillow_reader import PillowReader
from foveate.images.formats.reader import Reader
from foveate.images.sources.source import Source
from foveate.types import Size, UInt8

_HEAD = 2**16
"""Bytes in which most files say how large their image is."""
_SCALES = (1, 2, 3, 4, 8)
"""Eighths of its size at which a file is decoded; those between take longer than the whole."""


class JpegReader(Reader):
    """A JPEG file, decoded as a whole, as one tile, exactly as Pillow does.

    What simplejpeg does not take, such as CMYK and stray bytes between its parts, Pillow decodes.

    Raises:
        DataError: for too many pixels.
        MissingExtraError: without simplejpeg.
        ValueError: for a damaged file, and for colour spaces that only Pillow knows.
    """

    def __init__(self, source: Source) -> None:
        self._simplejpeg = require("simplejpeg", "to read JPEG files fast", "simplejpeg")
        self._source = source
        height, width, space = self._header()
        if space not in ("Gray", "YCbCr", "RGB"):
            raise ValueError(f"the colours are {space}")
        check_not_empty(source.name, (height, width))
        check_decodable(source.name, (height, width), "it")
        self._colourspace = "GRAY" if space == "Gray" else "RGB"
        level = Level((height, width), (height, width))
        self.layout = Layout((level,), 1 if space == "Gray" else 3, shrinks=True)

    def _header(self) -> tuple[int, int, str]:
        header = self._simplejpeg.decode_jpeg_header
        try:
            found = header(self._source.read(0, min(_HEAD, self._source.size)))
        except ValueError:  # metadata and thumbnails can be longer
            found = header(self._source.read(0, self._source.size))
        return int(found[0]), int(found[1]), str(found[2])

    def tile(self, level: int, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Reader.tile`."""
        return self._decode(8)

    def shrunk(self, size: Size) -> tuple[UInt8[np.ndarray, "h w c"], tuple[float, float]]:
        """See `Reader.shrunk`."""
        height, width = self.layout.levels[0].size
        large = [k for k in _SCALES if height * k >= size[0] * 8 and width * k >= size[1] * 8]
        eighths = min(large, default=8)
        pixels = self._decode(eighths)
        if pixels.shape[0] == height:  # also where Pillow decoded it, as a whole
            eighths = 8
        return pixels, (height * eighths / 8, width * eighths / 8)

    def _decode(self, eighths: int) -> UInt8[np.ndarray, "h w c"]:
        height, width = self.layout.levels[0].size
        try:
            pixels: np.ndarray = self._simplejpeg.decode_jpeg(
                self._source.read(0, self._source.size),
                self._colourspace,
                fastdct=False,
                fastupsample=False,
                min_height=-(-height * eighths // 8),
                min_width=-(-width * eighths // 8),
            )
        except ValueError:
            # Stray bytes and a missing end: Pillow knows which files are still whole.
            return PillowReader(self._source).tile(0, 0, 0)
        return pixels

    def close(self) -> None:
        """See `Reader.close`."""
        self._source.close()
