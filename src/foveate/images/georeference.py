"""Where on Earth an image lies: the tags of GeoTIFF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PIXEL_SCALE, _TIEPOINT, _TRANSFORMATION = 33550, 33922, 34264
_KEYS, _TEXTS = 34735, 34737
_RASTER_TYPE, _CITATION, _GEOGRAPHIC, _PROJECTED = 1025, 1026, 2048, 3072
_PIXEL_IS_POINT = 2
_USER_DEFINED = 32767

Affine = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Georeference:
    """An affine map from level-0 pixels to the coordinates of a reference system.

    Attributes:
        transform: (a, b, c, d, e, f), so that the point (y, x) of the image, which counts from the
            outer corner of its first pixel, lies at (a x + b y + c, d x + e y + f).
        epsg: the number of the reference system, if the file gives one.
        citation: what the file calls the reference system, if it does.
    """

    transform: Affine
    epsg: int | None = None
    citation: str | None = None

    def locate(self, y: float, x: float) -> tuple[float, float]:
        """The coordinates of a point of the image, in the order of the reference system's axes.

        Example:
            >>> utm = Georeference((10.0, 0.0, 500_000.0, 0.0, -10.0, 6_000_000.0), 32632)
            >>> utm.locate(y=2.0, x=3.0)
            (500030.0, 5999980.0)
        """
        a, b, c, d, e, f = self.transform
        return a * x + b * y + c, d * x + e * y + f


def georeference_of(tags: Mapping[int, Any]) -> Georeference | None:
    """The georeference in the tags of a TIFF page, by their numbers; None if it has none."""
    transform = _transform_of(tags)
    if transform is None:
        return None
    keys = _keys_of(tags.get(_KEYS, ()))
    if keys.get(_RASTER_TYPE) == (0, 1, _PIXEL_IS_POINT):
        # The tags speak of the centre of a pixel; we count from its corner.
        a, b, c, d, e, f = transform
        transform = (a, b, c - (a + b) / 2, d, e, f - (d + e) / 2)
    return Georeference(transform, _epsg_of(keys), _citation_of(keys, tags.get(_TEXTS, "")))


def _transform_of(tags: Mapping[int, Any]) -> Affine | None:
    if _TRANSFORMATION in tags:
        a, b, _, c, d, e, _, f = (float(value) for value in tags[_TRANSFORMATION][:8])
        return (a, b, c, d, e, f)
    if _PIXEL_SCALE in tags and _TIEPOINT in tags:
        scale_x, scale_y = (float(value) for value in tags[_PIXEL_SCALE][:2])
        x, y, _, east, north = (float(value) for value in tags[_TIEPOINT][:5])
        return (scale_x, 0.0, east - x * scale_x, 0.0, -scale_y, north + y * scale_y)
    return None


def _keys_of(directory: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Each key's (tag that holds it, count, value or offset); the first four are a header."""
    numbers = [int(number) for number in directory]
    rows = [numbers[i : i + 4] for i in range(4, len(numbers) - 3, 4)]
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def _epsg_of(keys: Mapping[int, tuple[int, int, int]]) -> int | None:
    for key in (_PROJECTED, _GEOGRAPHIC):
        code = keys.get(key, (0, 1, 0))[2]
        if 0 < code < _USER_DEFINED:
            return code
    return None


def _citation_of(keys: Mapping[int, tuple[int, int, int]], texts: str) -> str | None:
    where, count, offset = keys.get(_CITATION, (0, 0, 0))
    return str(texts)[offset : offset + count].rstrip("|\0 ") or None if where == _TEXTS else None
