from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from foveate.errors import InputError
from foveate.images import Georeference
from foveate.reports import Record, geojson_of, record_of
from reports.planted import CLASSES, SIZE, planted_model, planted_prediction

UTM = Georeference((10.0, 0.0, 500_000.0, 0.0, -10.0, 6_000_000.0), 32632)


def planted_record(n_patches: int = 1) -> Record:
    _, out = planted_prediction(row=20, column=7, n_patches=n_patches)
    return record_of("a.png", SIZE, out, 0, CLASSES, planted_model().border)


def kinds(collection: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [f for f in collection["features"] if f["properties"]["objectType"] == kind]


def signed_area(ring: list[list[float]]) -> float:
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in itertools.pairwise(ring)) / 2


def test_a_patch_is_an_annotation_in_full_resolution_pixels() -> None:
    (patch,) = kinds(geojson_of(planted_record()), "annotation")
    assert patch["type"] == "Feature"
    assert patch["geometry"]["type"] == "Polygon"
    ring = [[140, 400], [160, 400], [160, 420], [140, 420], [140, 400]]
    assert patch["geometry"]["coordinates"] == [ring]
    properties = patch["properties"]
    assert properties["name"] == "patch 1"
    assert properties["classification"] == {"name": "patch", "color": [0, 191, 255]}
    assert set(properties["measurements"]) == {"weight", "attention"}


def test_the_cell_that_holds_the_mass_is_a_detection_where_the_target_is() -> None:
    (cell,) = kinds(geojson_of(planted_record()), "detection")
    (ring,) = cell["geometry"]["coordinates"]
    expected = [[140, 400], [160, 400], [160, 420], [140, 420], [140, 400]]
    assert list(itertools.chain(*ring)) == pytest.approx(list(itertools.chain(*expected)))
    assert cell["properties"]["classification"]["name"] == "attention"
    assert cell["properties"]["measurements"]["attention"] > 0.9


@pytest.mark.parametrize(("share", "most", "count"), [(0.5, 99, 1), (0.9, 99, 3), (1.0, 2, 2)])
def test_cells_are_the_fewest_that_hold_the_share(share: float, most: int, count: int) -> None:
    mass = torch.tensor([[0.05, 0.25], [0.1, 0.6]])
    record = Record("a.png", (10, 10), {"a": 1.0}, (), mass)
    found = kinds(geojson_of(record, share=share, most=most), "detection")
    masses = [cell["properties"]["measurements"]["attention"] for cell in found]
    assert masses == pytest.approx([0.6, 0.25, 0.1, 0.05][:count])


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="must be above 0 and at most 1"):
        geojson_of(planted_record(), share=share)


def test_a_map_has_the_coordinates_of_the_file() -> None:
    collection = geojson_of(planted_record(), where=UTM)
    (patch,) = kinds(collection, "annotation")
    (ring,) = patch["geometry"]["coordinates"]
    assert sorted(map(tuple, ring[1:])) == [
        (501_400.0, 5_995_800.0),
        (501_400.0, 5_996_000.0),
        (501_600.0, 5_995_800.0),
        (501_600.0, 5_996_000.0),
    ]
    assert collection["crs"]["properties"]["name"] == "urn:ogc:def:crs:EPSG::32632"


@pytest.mark.parametrize("where", [None, UTM, Georeference((0.0, 1.0, 0.0, 1.0, 0.0, 0.0))])
def test_rings_are_closed_and_go_against_the_clock(where: Georeference | None) -> None:
    for feature in geojson_of(planted_record(3), where=where)["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        assert len(ring) == 5
        assert signed_area(ring) > 0


def test_a_reference_system_without_a_number_is_noted() -> None:
    collection = geojson_of(planted_record(), where=Georeference(UTM.transform, None, "my site"))
    assert "crs" not in collection
    assert collection["note"] == "coordinates are of my site, which has no EPSG code"


def test_a_model_without_attention_gives_an_empty_collection() -> None:
    record = Record("a.png", (10, 10), {"a": 1.0})
    assert geojson_of(record) == {"type": "FeatureCollection", "features": []}
