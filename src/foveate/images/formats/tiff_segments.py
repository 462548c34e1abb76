"""The levels of a TIFF file as they are stored: in tiles, in strips, or row by row.

Every stored segment is found by its offset and length in the file, so that reading one touches
nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from foveate.images.formats.damage import check_decodable
from foveate.images.formats.layout import Level
from foveate.images.formats.quiet import quiet
from foveate.images.formats.tiff_colours import TiffColours
from foveate.images.formats.tiff_pages import Pages
from foveate.images.sources.source import Source
from foveate.types import Num, Size, UInt8

_BAND_ROWS, _BAND_PIXELS = 64, 2**20
"""What short strips are joined to, so that a patch is not read in a hundred pieces."""
_BLOCK = (128, 1024)
"""Rows and columns in which uncompressed images are read, where rows are long."""
_REMOTE_BYTES = 2**18
"""What is fetched at once of uncompressed rows: a request costs more than its bytes."""


class Segments(ABC):
    """One level of a TIFF file.

    Attributes:
        level: its size, and the tiles in which it is read.
    """

    level: Level

    @abstractmethod
    def read(self, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """The colours of one tile."""


class Stored:
    """The encoded segments of a page, or of one page for each channel.

    Args:
        pages: the pages.
        count: how many segments each channel or page has.
        source: the file.
    """

    def __init__(self, pages: Pages, count: int, source: Source) -> None:
        page = pages.key
        self._source = source
        self._decode = page.decode
        self._options = _jpeg_options(page)
        self._empty = page.nodata
        self._dtype = page.dtype
        self._samples = page.samplesperpixel if page.planarconfig == 1 else 1
        channels = 1 if page.planarconfig == 1 else int(page.samplesperpixel)
        self._planes: list[tuple[np.ndarray, np.ndarray, int]] = []
        for plane in pages.planes:
            offsets = np.array(plane.dataoffsets, np.int64)
            counts = np.array(plane.databytecounts, np.int64)
            found = min(len(offsets), len(counts))
            if found < channels * count:
                raise ValueError(f"it has {found} segments where {channels * count} are needed")
            self._planes += [(offsets, counts, i * count) for i in range(channels)]

    def bytes(self, index: int, plane: int = 0) -> bytes:
        """One segment as it is stored; nothing if it is left out."""
        offsets, counts, first = self._planes[plane]
        offset, count = int(offsets[first + index]), int(counts[first + index])
        return self._source.read(offset, count) if offset and count else b""

    def decode(self, index: int, shape: Size) -> Num[np.ndarray, "h w s"]:
        """The samples of one segment, of all planes; of this shape if it is left out."""
        planes = [self._decoded(index, plane, shape) for plane in range(len(self._planes))]
        return planes[0] if len(planes) == 1 else np.concatenate(planes, axis=2)

    def _decoded(self, index: int, plane: int, shape: Size) -> Num[np.ndarray, "h w s"]:
        data = self.bytes(index, plane)
        if not data:
            return np.full((*shape, self._samples), self._empty, self._dtype)
        with quiet("tifffile"):
            found = self._decode(data, self._planes[plane][2] + index, **self._options)
        samples: np.ndarray = found[0][0]  # the first and only depth
        return samples.view(np.uint8) if samples.dtype == np.bool_ else samples


class Tiles(Segments):
    """Tiles as they are stored."""

    def __init__(self, pages: Pages, colours: TiffColours, source: Source) -> None:
        page = pages.key
        self.level = Level(pages.size, (int(page.tilelength), int(page.tilewidth)))
        check_decodable(source.name, self.level.tile, "a tile")
        self._colours = colours
        self._columns = self.level.grid[1]
        self._stored = Stored(pages, self.level.grid[0] * self._columns, source)

    def read(self, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Segments.read`."""
        return self._colours(self._stored.decode(row * self._columns + column, self.level.tile))


class Strips(Segments):
    """Strips, short ones joined to bands."""

    def __init__(self, pages: Pages, colours: TiffColours, source: Source) -> None:
        height, width = pages.size
        self._rows = min(int(pages.key.rowsperstrip), height)
        check_decodable(source.name, (self._rows, width), "a strip")
        self._count = -(-height // self._rows)
        joined = min(_BAND_ROWS // self._rows, _BAND_PIXELS // (self._rows * width))
        self._joined = min(max(joined, 1), self._count)
        self.level = Level(pages.size, (min(self._rows * self._joined, height), width))
        self._colours = colours
        self._stored = Stored(pages, self._count, source)

    def read(self, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Segments.read`."""
        first = row * self._joined
        last = min(first + self._joined, self._count)
        shape = (self._rows, self.level.size[1])
        strips = [self._stored.decode(index, shape) for index in range(first, last)]
        return self._colours(strips[0] if len(strips) == 1 else np.concatenate(strips))


class Rows(Segments):
    """Uncompressed samples that lie one after the other, of which any part can be read."""

    def __init__(self, pages: Pages, colours: TiffColours, source: Source) -> None:
        page = pages.key
        height, width = pages.size
        contiguous = page.planarconfig == 1
        self._samples = int(page.samplesperpixel) if contiguous else 1
        planes = 1 if contiguous else int(page.samplesperpixel)
        self._type = np.dtype(page.dtype).newbyteorder(page.parent.byteorder)
        self._pixel = self._type.itemsize * self._samples
        size = height * width * self._pixel
        self._starts = [
            int(plane.dataoffsets[0]) + i * size for plane in pages.planes for i in range(planes)
        ]
        if source.location.is_remote or width <= _BLOCK[1]:
            rows = max(_REMOTE_BYTES // (width * self._pixel), 1)
            self.level = Level(pages.size, (min(rows, height), width))
        else:
            self.level = Level(pages.size, (min(_BLOCK[0], height), _BLOCK[1]))
        self._source = source
        self._colours = colours

    def read(self, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Segments.read`."""
        (height, width), (rows, columns) = self.level.size, self.level.tile
        top, left = row * rows, column * columns
        shape = (min(rows, height - top), min(columns, width - left), self._samples)
        planes = [self._plane(start, top, left, shape) for start in self._starts]
        return self._colours(planes[0] if len(planes) == 1 else np.concatenate(planes, axis=2))

    def _plane(
        self, start: int, top: int, left: int, shape: tuple[int, int, int]
    ) -> Num[np.ndarray, "h w s"]:
        step = self.level.size[1] * self._pixel
        first = start + top * step + left * self._pixel
        if shape[1] == self.level.size[1]:
            data = self._source.read(first, shape[0] * step)
        else:
            count = shape[1] * self._pixel
            data = b"".join(self._source.read(first + i * step, count) for i in range(shape[0]))
        samples = np.frombuffer(data, self._type).reshape(shape)
        return samples.astype(self._type.newbyteorder("="))


def lie_in_rows(pages: Pages) -> bool:
    """Whether a page's samples are uncompressed and lie one after the other."""
    page = pages.key
    return bool(
        not page.is_tiled
        and page.predictor == 1
        and page.fillorder == 1
        and page.dtype.itemsize * 8 == page.bitspersample
        and all(plane.is_contiguous for plane in pages.planes)
    )


def _jpeg_options(page: Any) -> dict[str, bytes]:
    """What is common to all segments and needed to decode each."""
    options = {"jpegtables": page.jpegtables, "jpegheader": page.jpegheader}
    return {name: value for name, value in options.items() if value is not None}
