from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from foveate import open_image
from foveate.images import Georeference

SCALE, TIEPOINT, TRANSFORMATION, KEYS, TEXTS = 33550, 33922, 34264, 34735, 34737
UTM = (1, 1, 0, 3, 1024, 0, 1, 1, 1026, TEXTS, 10, 0, 3072, 0, 1, 32632)


def georeference(path: Path, *tags: tuple[Any, ...]) -> Georeference | None:
    tifffile.imwrite(path, np.zeros((32, 32), np.uint8), extratags=tags, metadata=None)
    return open_image(path).georeference


def doubles(code: int, *values: float) -> tuple[Any, ...]:
    return (code, 12, len(values), values, True)


def shorts(*values: int) -> tuple[Any, ...]:
    return (KEYS, 3, len(values), values, True)


def test_a_scale_and_a_tiepoint(tmp_path: Path) -> None:
    found = georeference(
        tmp_path / "a.tif",
        doubles(SCALE, 10.0, 20.0, 0.0),
        doubles(TIEPOINT, 2.0, 3.0, 0.0, 500_000.0, 6_000_000.0, 0.0),
        shorts(*UTM),
        (TEXTS, 2, 11, "UTM 32N abc|", True),
    )
    assert found == Georeference(
        (10.0, 0.0, 499_980.0, 0.0, -20.0, 6_000_060.0), 32632, "UTM 32N ab"
    )
    assert found.locate(y=3.0, x=2.0) == (500_000.0, 6_000_000.0)


def test_a_transformation_and_pixels_that_are_points(tmp_path: Path) -> None:
    matrix = (1.0, 2.0, 0.0, 100.0, 3.0, 4.0, 0.0, 200.0) + (0.0,) * 7 + (1.0,)
    keys = (1, 1, 0, 2, 1025, 0, 1, 2, 2048, 0, 1, 4326)
    found = georeference(tmp_path / "a.tif", doubles(TRANSFORMATION, *matrix), shorts(*keys))
    assert found is not None
    assert found.epsg == 4326
    assert found.citation is None
    assert found.locate(y=0.5, x=0.5) == pytest.approx((100.0, 200.0))
    assert found.locate(y=1.5, x=0.5) == pytest.approx((102.0, 204.0))


def test_a_system_of_the_user_s_own_has_no_number(tmp_path: Path) -> None:
    found = georeference(
        tmp_path / "a.tif",
        doubles(SCALE, 1.0, 1.0, 0.0),
        doubles(TIEPOINT, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        shorts(1, 1, 0, 1, 3072, 0, 1, 32767),
    )
    assert found == Georeference((1.0, 0.0, 0.0, 0.0, -1.0, 0.0))


def test_other_files_have_none(tmp_path: Path) -> None:
    assert georeference(tmp_path / "a.tif") is None
    assert georeference(tmp_path / "b.tif", doubles(SCALE, 1.0, 1.0, 0.0)) is None
    assert open_image(np.zeros((4, 4), np.uint8)).georeference is None
