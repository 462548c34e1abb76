"""Whatever Pillow opens: PNG, BMP, WebP, JPEG 2000 and others, decoded as a whole."""

from __future__ import annotations

import io
import threading
import warnings
from typing import Any

import numpy as np

from foveate.errors import DataError
from foveate.extras import require
from foveate.images.formats.colours import over_white, scale_to_bytes
from foveate.images.formats.damage import check_decodable, check_not_empty, damaged
from foveate.images.formats.layout import Layout, Level
from foveate.images.formats.reader import Reader
from foveate.images.sources.source import Source
from foveate.types import Size, UInt8

_turn = threading.Lock()
"""Held while Pillow's limit and Python's warnings, which all threads share, are changed."""

_GREY = ("1", "L", "LA", "La")
_COLOUR = ("RGB", "RGBA", "RGBa", "RGBX", "P", "PA", "CMYK", "YCbCr", "HSV")
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")
"""Grey of 16 bits; Pillow scales what it opens as "I" to that."""


class PillowReader(Reader):
    """A file that is decoded as a whole, as one tile.

    Raises:
        DataError: for too many pixels, floats, and colours that are not understood.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        with self._open() as image:
            mode, form = image.mode, image.format
            size = (image.height, image.width)
        check_not_empty(source.name, size)
        check_decodable(source.name, size, "it")
        grey = mode in _GREY or mode in _DEEP
        if not grey and mode not in _COLOUR:
            raise DataError(
                f"cannot open {source.name}: its pixels are of the kind {mode}, and grey, RGB, a "
                "palette and CMYK, of 8 or 16 bits, are understood; convert it to one of them"
            )
        # JPEG 2000 can also give less than the whole, but shifted by half a pixel.
        shrinks = form in ("JPEG", "MPO")
        self.layout = Layout((Level(size, size),), 1 if grey else 3, shrinks)

    def tile(self, level: int, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """See `Reader.tile`."""
        try:
            with self._open() as image:
                return _colours_of(image)
        except (DataError, MemoryError):
            raise
        except Exception as error:
            raise damaged(self._source.name, error) from error

    def shrunk(self, size: Size) -> tuple[UInt8[np.ndarray, "h w c"], tuple[float, float]]:
        """See `Reader.shrunk`."""
        height, width = self.layout.levels[0].size
        factor = _factor(min(height // size[0], width // size[1]))
        try:
            with self._open() as image:
                image.draft(None, (width // factor, height // factor))
                pixels = _colours_of(image)
        except (DataError, MemoryError):
            raise
        except Exception as error:
            raise damaged(self._source.name, error) from error
        taken = round(height / pixels.shape[0])
        return pixels, (height / taken, width / taken)

    def close(self) -> None:
        """See `Reader.close`."""
        self._source.close()

    def _open(self) -> Any:
        pillow = require("PIL.Image", "to read images", "pillow")
        location = self._source.location
        if location.is_remote:
            file: Any = io.BytesIO(self._source.read(0, self._source.size))
        else:
            file = location.path
        with _turn, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata; errors are another matter
            limit, pillow.MAX_IMAGE_PIXELS = pillow.MAX_IMAGE_PIXELS, None
            try:
                return pillow.open(file)
            except pillow.UnidentifiedImageError:
                raise ValueError("its content is of no known format") from None
            finally:
                pillow.MAX_IMAGE_PIXELS = limit


def _factor(ratio: int) -> int:
    """The largest of 1, 2, 4 and 8 that is not larger than a ratio."""
    return max(factor for factor in (1, 2, 4, 8) if factor <= max(ratio, 1))


def _colours_of(image: Any) -> UInt8[np.ndarray, "h w c"]:
    """Decode an image of Pillow, by the rule of `colours`."""
    if image.mode in _DEEP:
        image.load()
        return scale_to_bytes(np.asarray(image), 65535)[..., None]
    if image.has_transparency_data:
        grey = image.mode in _GREY
        pixels = np.asarray(image.convert("LA" if grey else "RGBA"))
        return np.ascontiguousarray(over_white(pixels[..., :-1], pixels[..., -1]))
    pixels = np.array(image.convert("L" if image.mode in _GREY else "RGB"))
    return pixels[..., None] if pixels.ndim == 2 else pixels
