"""Attention as a GeoTIFF: one pixel a cell, laid over the map where the image lies."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from torch import Tensor

from foveate.errors import DataError, InputError
from foveate.extras import require
from foveate.images import Georeference
from foveate.images.formats.quiet import quiet
from foveate.images.sources.location import locate
from foveate.images.sources.remote import RemoteSource
from foveate.images.sources.source import LocalSource, Source
from foveate.reports.record import Record

_PIXEL_SCALE, _TIEPOINT, _TRANSFORMATION = 33550, 33922, 34264
_KEYS, _DOUBLES, _TEXTS = 34735, 34736, 34737
_RASTER_TYPE, _PIXEL_IS_AREA = 1025, 1
_SHORT, _ASCII, _DOUBLE = 3, 2, 12
"""TIFF's numbers for the types of tags."""

Tag = tuple[int, int, int, Any, bool]
"""A tag as tifffile writes it: number, type, count, value, whether on the first page only."""


def write_heatmap(record: Record, where: Georeference, path: str | PathLike[str]) -> None:
    """Write the attention mass of each cell as a map that GDAL and QGIS open.

    The reference system is copied from the image's own tags, whatever it is; only what says where
    pixels lie is new, since a cell is many pixels wide and the first may not begin at the border.

    Args:
        record: what a model made of an image, whose path is that of a GeoTIFF.
        where: the image's georeference.
        path: the file to write.

    Raises:
        InputError: for a record without attention.
        DataError: if the image can not be read any more.
    """
    if record.attention is None:
        raise InputError(f"cannot write the attention of {record.path}: its model has none")
    tifffile = require("tifffile", "to write GeoTIFF files", "tifffile")
    tags = [*_place_tags(cell_transform(record, where)), *_system_tags(record.path)]
    values: Tensor = record.attention
    with quiet("tifffile"):
        tifffile.imwrite(
            path,
            values.numpy(),
            photometric="minisblack",
            compression="zlib",
            metadata=None,
            extratags=tags,
        )


def cell_transform(
    record: Record, where: Georeference
) -> tuple[float, float, float, float, float, float]:
    """The affine map from (column, row) of the attention to coordinates; see `Georeference`.

    Example:
        >>> import torch
        >>> utm = Georeference((10.0, 0.0, 500_000.0, 0.0, -10.0, 6_000_000.0), 32632)
        >>> flat = torch.ones(4, 8) / 32
        >>> record = Record("a.tif", (100, 200), {"cat": 1.0}, (), flat, border=(0.1, 0.1))
        >>> cell_transform(record, utm)
        (200.0, 0.0, 500200.0, 0.0, -200.0, 5999900.0)
    """
    if record.attention is None:
        raise InputError(f"cannot place the attention of {record.path}: its model has none")
    (rows, columns), (height, width) = record.attention.shape, record.image_size
    border_y, border_x = record.border
    cell_y, cell_x = height * (1 - 2 * border_y) / rows, width * (1 - 2 * border_x) / columns
    a, b, _, d, e, _ = where.transform
    c, f = where.locate(border_y * height, border_x * width)
    return (a * cell_x, b * cell_y, c, d * cell_x, e * cell_y, f)


def _place_tags(transform: tuple[float, float, float, float, float, float]) -> list[Tag]:
    """North up as a scale and a tie point, as everyone reads it; all else as a matrix."""
    a, b, c, d, e, f = transform
    if b == d == 0 and a > 0 > e:
        return [
            (_PIXEL_SCALE, _DOUBLE, 3, (a, -e, 0.0), True),
            (_TIEPOINT, _DOUBLE, 6, (0.0, 0.0, 0.0, c, f, 0.0), True),
        ]
    matrix = (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    return [(_TRANSFORMATION, _DOUBLE, 16, matrix, True)]


def _system_tags(image: str) -> list[Tag]:
    """The tags of an image that name its reference system; ours speak of areas, not points."""
    tifffile = require("tifffile", "to read TIFF files", "tifffile")
    location = locate(image)
    source: Source = RemoteSource(location) if location.is_remote else LocalSource(location)
    try:
        with quiet("tifffile"), source.file() as file, tifffile.TiffFile(file) as tiff:
            found = {code: tiff.pages[0].tags.valueof(code) for code in (_KEYS, _DOUBLES, _TEXTS)}
    except (tifffile.TiffFileError, OSError) as error:
        raise DataError(
            f"cannot read the reference system of {image} ({error}); restore the file"
        ) from error
    finally:
        source.close()
    tags: list[Tag] = []
    if found[_KEYS] is not None:
        keys = _of_areas([int(number) for number in found[_KEYS]])
        tags.append((_KEYS, _SHORT, len(keys), tuple(keys), True))
    if found[_DOUBLES] is not None:
        doubles = tuple(np.atleast_1d(found[_DOUBLES]).tolist())  # one alone is a number
        tags.append((_DOUBLES, _DOUBLE, len(doubles), doubles, True))
    if found[_TEXTS] is not None:
        tags.append((_TEXTS, _ASCII, 0, str(found[_TEXTS]), True))
    return tags


def _of_areas(keys: list[int]) -> list[int]:
    """The directory of keys, saying that a pixel is an area that begins at its corner."""
    rows = [keys[i : i + 4] for i in range(4, len(keys) - 3, 4)]
    rows = [row for row in rows if row[0] != _RASTER_TYPE]
    rows = sorted([*rows, [_RASTER_TYPE, 0, 1, _PIXEL_IS_AREA]])
    return [*keys[:3], len(rows), *(number for row in rows for number in row)]
