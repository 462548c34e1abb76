"""Patches and attention as GeoJSON: for QuPath in full-resolution pixels, for maps in coordinates.

QuPath (0.4 and later) opens a FeatureCollection whose features say in `objectType` what they are:
patches are annotations, cells of the attention are detections that can be coloured by their
measurement. QuPath counts pixels from the outer corner of the first, x to the right and y down, as
foveate does.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from foveate.errors import InputError
from foveate.images import Georeference
from foveate.reports.heat import heat_colours
from foveate.reports.pictures import Number
from foveate.reports.record import Patch, Record
from foveate.types import Float

SHARE = 0.9
"""How much of the attention the cells that are written hold together."""
MOST = 2000
"""The most cells that are written."""

_BLUE, _ORANGE = [0, 191, 255], [252, 165, 10]

Corner = tuple[Number, Number]
"""(y, x)."""


def geojson_of(
    record: Record, share: float = SHARE, most: int = MOST, where: Georeference | None = None
) -> dict[str, Any]:
    """A record as a FeatureCollection of rectangles.

    Args:
        record: what a model made of an image.
        share: of the cells, the fewest that together hold this share of the attention are written.
        most: but no more than so many.
        where: the image's georeference, to write coordinates of its reference system; None writes
            pixels of the full resolution. Plain GeoJSON (RFC 7946) knows only longitude and
            latitude; other systems are named in the older member "crs", which GDAL and QGIS read.

    Raises:
        InputError: for a share that is none.

    Example:
        >>> patch = Patch((10, 20), (5, 5), weight=1.0, attention=0.5)
        >>> record = Record("a.png", (100, 100), {"cat": 1.0}, (patch,))
        >>> geojson_of(record)["features"][0]["geometry"]["coordinates"]
        [[[20, 10], [25, 10], [25, 15], [20, 15], [20, 10]]]
    """
    if not 0 < share <= 1:
        raise InputError(f"the share of the attention must be above 0 and at most 1, not {share}")
    features = [_patch_feature(*ranked, where) for ranked in enumerate(record.patches, start=1)]
    if record.attention is not None:
        features += _cell_features(record, record.attention, share, most, where)
    collection: dict[str, Any] = {"type": "FeatureCollection", "features": features}
    if where is not None:
        collection |= _reference_system(where)
    return collection


def _patch_feature(rank: int, patch: Patch, where: Georeference | None) -> dict[str, Any]:
    (y, x), (p, q) = patch.yx_level0, patch.size
    return _feature(
        _ring((y, x), (y + p, x + q), where),
        objectType="annotation",
        name=f"patch {rank}",
        classification={"name": "patch", "color": _BLUE},
        measurements={"weight": patch.weight, "attention": patch.attention},
    )


def _cell_features(
    record: Record,
    attention: Float[Tensor, "h w"],
    share: float,
    most: int,
    where: Georeference | None,
) -> list[dict[str, Any]]:
    (rows, columns), colours = attention.shape, heat_colours(attention)
    (height, width), (border_y, border_x) = record.image_size, record.border
    top, left = border_y * height, border_x * width
    cell_y, cell_x = (height - 2 * top) / rows, (width - 2 * left) / columns
    features = []
    for index in _heaviest(attention.flatten(), share, most):
        row, column = divmod(index, columns)
        first = (top + row * cell_y, left + column * cell_x)
        last = (top + (row + 1) * cell_y, left + (column + 1) * cell_x)
        feature = _feature(
            _ring(first, last, where),
            objectType="detection",
            classification={"name": "attention", "color": _ORANGE},
            color=colours[row, column, :3].tolist(),
            measurements={"attention": attention[row, column].item()},
        )
        features.append(feature)
    return features


def _heaviest(mass: Float[Tensor, " k"], share: float, most: int) -> list[int]:
    """The fewest cells that hold a share of the mass, the heaviest first."""
    mass, order = mass.double().sort(descending=True, stable=True)
    before = mass.cumsum(0) - mass
    count = int((before < share * mass.sum()).sum())
    return order[: min(count, most)].tolist()


def _ring(first: Corner, last: Corner, where: Georeference | None) -> list[list[Number]]:
    """A rectangle as the closed ring of its corners, against the clock as RFC 7946 has it."""
    (y0, x0), (y1, x1) = first, last
    corners = [(y0, x0), (y0, x1), (y1, x1), (y1, x0)]
    ring: list[list[Number]] = [[round(x, 3), round(y, 3)] for y, x in corners]
    if where is not None:
        ring = [[*where.locate(float(y), float(x))] for y, x in corners]
        a, b, _, d, e, _ = where.transform
        ring = ring if a * e - b * d > 0 else ring[::-1]
    return [*ring, ring[0]]


def _feature(ring: list[list[Number]], **properties: Any) -> dict[str, Any]:
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def _reference_system(where: Georeference) -> dict[str, Any]:
    """The members that say which reference system coordinates are of."""
    named = where.citation or "the image's own reference system"
    if where.epsg is None:
        return {"note": f"coordinates are of {named}, which has no EPSG code"}
    name = f"urn:ogc:def:crs:EPSG::{where.epsg}"
    return {"crs": {"type": "name", "properties": {"name": name}}}
