from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from foveate import open_image
from foveate.errors import DataError, InputError
from foveate.images.georeference import Georeference, georeference_of
from foveate.reports import Record, record_of, write_heatmap
from reports.planted import CLASSES, SIZE, planted_model, planted_pixels, planted_prediction

SCALE = (33550, 12, 3, (10.0, 10.0, 0.0), True)
TIEPOINT = (33922, 12, 6, (0.0, 0.0, 0.0, 500_000.0, 6_000_000.0, 0.0), True)
TURNED = (0.0, 5.0, 0.0, 700.0, 5.0, 0.0, 0.0, 900.0, *[0.0] * 7, 1.0)


def keys(raster_type: int) -> tuple[Any, ...]:
    """A projected system with a name and parameters of its own."""
    rows = [(1024, 0, 1, 1), (1025, 0, 1, raster_type), (1026, 34737, 8, 0)]
    rows += [(2057, 34736, 1, 0), (3072, 0, 1, 32632)]
    numbers = [1, 1, 0, len(rows), *(number for row in rows for number in row)]
    return (34735, 3, len(numbers), tuple(numbers), True)


def geotiff(path: Path, *tags: tuple[Any, ...]) -> Path:
    names = [(34736, 12, 1, 6378137.0, True), (34737, 2, 0, "my site|", True)]
    tifffile.imwrite(
        path, planted_pixels(20, 7), photometric="rgb", tile=(64, 64), extratags=[*names, *tags]
    )
    return path


def heatmap(image: Path, path: Path) -> tuple[np.ndarray, dict[int, Any]]:
    """Writes the attention of an image; its values and tags."""
    _, out = planted_prediction(row=20, column=7)
    where = open_image(image).georeference
    assert where is not None
    record = record_of(str(image), SIZE, out, 0, CLASSES, planted_model().border)
    write_heatmap(record, where, path)
    with tifffile.TiffFile(path) as tiff:
        tags = {tag.code: tag.value for tag in tiff.pages[0].tags}  # type: ignore[union-attr]
        return tiff.asarray(), tags


def peak(values: np.ndarray, where: Georeference) -> tuple[float, float]:
    row, column = divmod(int(values.argmax()), values.shape[1])
    return where.locate(row + 0.5, column + 0.5)


@pytest.mark.parametrize("raster_type", [1, 2])
def test_the_peak_lies_on_the_target(tmp_path: Path, raster_type: int) -> None:
    image = geotiff(tmp_path / "a.tif", SCALE, TIEPOINT, keys(raster_type))
    values, tags = heatmap(image, tmp_path / "heat.tif")
    assert values.shape == (30, 40)
    assert values.dtype == np.float32
    assert values.sum() == pytest.approx(1.0, abs=1e-4)
    where = georeference_of(tags)
    assert where is not None
    # The target's centre is pixel (410, 150); where pixels are points, all is half a pixel off.
    off = 5.0 if raster_type == 2 else 0.0
    assert peak(values, where) == pytest.approx((501_500.0 - off, 5_995_900.0 + off))
    assert 33550 in tags  # north is up, so scale and tie point say it all


def test_the_reference_system_is_copied(tmp_path: Path) -> None:
    image = geotiff(tmp_path / "a.tif", SCALE, TIEPOINT, keys(2))
    _, tags = heatmap(image, tmp_path / "heat.tif")
    assert tuple(tags[34735]) == keys(1)[3]  # but its pixels are areas
    assert tags[34736] == (6378137.0,)
    where = georeference_of(tags)
    assert where is not None
    assert (where.epsg, where.citation) == (32632, "my site")


def test_a_turned_image_has_a_turned_heatmap(tmp_path: Path) -> None:
    image = geotiff(tmp_path / "a.tif", (34264, 12, 16, TURNED, True), keys(1))
    values, tags = heatmap(image, tmp_path / "heat.tif")
    where = georeference_of(tags)
    assert where is not None
    assert peak(values, where) == pytest.approx((700 + 5 * 410, 900 + 5 * 150))


def test_what_can_not_be_written_says_why(tmp_path: Path) -> None:
    where = Georeference((1.0, 0.0, 0.0, 0.0, -1.0, 0.0))
    with pytest.raises(
        InputError, match=r"cannot write the attention of a\.tif: its model has none"
    ):
        write_heatmap(Record("a.tif", (10, 10), {"a": 1.0}), where, tmp_path / "heat.tif")
    (tmp_path / "a.tif").write_bytes(b"no longer a TIFF file")
    _, out = planted_prediction(row=20, column=7)
    record = record_of(str(tmp_path / "a.tif"), SIZE, out, 0, CLASSES)
    with pytest.raises(DataError, match=r"cannot read the reference system of .*a\.tif"):
        write_heatmap(record, where, tmp_path / "heat.tif")
