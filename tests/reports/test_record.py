from __future__ import annotations

import json

import pytest
import torch

from foveate import Prediction
from foveate.errors import InputError
from foveate.reports import Record, record_of
from reports.planted import CLASSES, SIZE, planted_model, planted_prediction


def test_a_record_says_where_the_target_was_found() -> None:
    _, out = planted_prediction(row=20, column=7)
    record = record_of("a.png", SIZE, out, 0, CLASSES, planted_model().border)
    (patch,) = record.patches
    assert patch.yx_level0 == (400, 140)
    assert patch.size == (20, 20)
    assert patch.weight == pytest.approx(1.0)
    assert patch.attention > 0.9
    assert sum(record.probabilities.values()) == pytest.approx(1.0)
    assert record.probabilities[record.label] == max(record.probabilities.values())


def test_a_record_is_plain_json() -> None:
    _, out = planted_prediction(row=20, column=7, n_patches=5)
    record = record_of("a.png", SIZE, out, 0, CLASSES, planted_model().border)
    values = json.loads(json.dumps(record.as_dict()))
    assert values["path"] == "a.png"
    assert values["image_size"] == [680, 880]
    assert values["cells"] == [30, 40]
    assert values["border"] == [2 / 34, 2 / 44]
    assert set(values["probabilities"]) == set(CLASSES)
    assert len(values["patches"]) == 5
    assert values["patches"][0]["yx_level0"] == [400, 140]
    weights = [patch["weight"] for patch in values["patches"]]
    assert weights == sorted(weights, reverse=True)


def test_a_patch_has_the_attention_of_its_own_cell() -> None:
    _, out = planted_prediction(row=20, column=7, n_patches=5)
    assert out.log_attention is not None
    assert out.draw is not None
    record = record_of("a.png", SIZE, out, 0, CLASSES)
    mass = out.log_attention[0].exp().flatten()[out.draw.index[0]]
    assert sorted(p.attention for p in record.patches) == pytest.approx(sorted(mass.tolist()))


def test_a_model_without_attention_has_no_patches() -> None:
    record = record_of("a.png", (50, 60), Prediction(torch.tensor([[3.0, 1.0]])), 0, CLASSES)
    assert record == Record("a.png", (50, 60), record.probabilities)
    assert record.label == "dark"
    assert record.as_dict()["cells"] is None
    assert record.as_dict()["patches"] == []


def test_classes_of_another_model_are_refused() -> None:
    with pytest.raises(InputError, match="cannot name 2 classes with 3 names"):
        record_of("a.png", (50, 60), Prediction(torch.zeros(1, 2)), 0, ("a", "b", "c"))
