"""What lies on the truth is counted right."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from foveate.datasets import ImageDataset
from foveate.experiments import measure_pointing
from foveate.experiments.pointing import cell_corners, on_truth
from foveate.images import ImageBatch, TensorBatch
from foveate.models import CNN, AttentionSampling, ConvFeature, DeepMIL, MILAttention
from foveate.training import Classifier, settings_for


class Bright(nn.Module):
    """Attention that lies wholly on the brightest pixel of the overview."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1000.0))

    def forward(self, overview: Tensor) -> Tensor:
        return self.scale * overview[:, 0]


class Spots(ImageDataset):
    """100x100 images with one bright square of 10x10 each, the truth of the first half."""

    channels = 1
    classes = ("a", "b")

    def __init__(self, places: list[tuple[int, int]], told: int) -> None:
        self.pixels = torch.zeros(len(places), 1, 100, 100, dtype=torch.uint8)
        for image, (y, x) in zip(self.pixels, places, strict=True):
            image[:, y : y + 10, x : x + 10] = 255
        self.places, self.told = places, told
        self.labels = torch.zeros(len(places), dtype=torch.int64)

    def images(self, index: Sequence[int]) -> ImageBatch:
        return TensorBatch(self.pixels[list(index)])

    def truth(self, index: int) -> Tensor:
        if index >= self.told:
            return super().truth(index)
        y, x = self.places[index]
        return torch.tensor([[y, x, y + 10, x + 10]], dtype=torch.float64)


def classifier(model: nn.Module) -> Classifier:
    settings = settings_for("digits", n_patches=1, patch_size=(10, 10), overview_size=(10, 10))
    return Classifier(model, settings, ("a", "b"), 1)


def looking() -> AttentionSampling:
    return AttentionSampling(
        Bright(),
        ConvFeature(1),
        nn.Linear(64, 2),
        patch_size=(10, 10),
        n_patches=1,
        overview_size=(10, 10),
    )


def test_attention_on_the_truth_is_all_on_the_truth(device: torch.device) -> None:
    data = Spots([(20, 30), (70, 0), (50, 50)], told=2)
    measured = measure_pointing(classifier(looking()).to(device), data, batch_size=1)
    assert measured is not None
    assert measured.images == 2
    assert measured.mass == pytest.approx(1)
    assert measured.chance == pytest.approx(1 / 100)
    assert (measured.patches, measured.found, measured.first, measured.objects) == (1, 1, 1, 1)


def test_attention_elsewhere_is_not() -> None:
    data = Spots([(20, 30), (70, 0)], told=2)
    data.pixels = data.pixels.flip(2)
    measured = measure_pointing(classifier(looking()), data)
    assert measured is not None
    assert measured.mass == pytest.approx(0, abs=1e-6)
    assert (measured.patches, measured.found, measured.first) == (0, 0, 0)


def test_without_truth_or_attention_there_is_nothing_to_measure() -> None:
    data = Spots([(20, 30)], told=0)
    assert measure_pointing(classifier(looking()), data) is None
    cnn = CNN(ConvFeature(1), nn.Linear(64, 2))
    assert measure_pointing(classifier(cnn), Spots([(20, 30)], told=1)) is None


def test_deep_mil_counts_as_many_patches_as_weigh_most() -> None:
    model = DeepMIL(
        MILAttention(64), ConvFeature(1), nn.Linear(64, 2), patch_size=(10, 10), grid=(10, 10)
    )
    measured = measure_pointing(classifier(model), Spots([(20, 30)], told=1))
    assert measured is not None
    assert measured.chance == pytest.approx(1 / 100)
    assert measured.patches in (0, 1)
    corners = cell_corners(model, torch.zeros(1, 10, 10), [(100, 100)])
    assert corners[0, 23].tolist() == [20, 30]


def test_a_patch_is_on_the_truth_where_it_shows_the_centre_of_a_box() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [40, 40, 60, 60]], dtype=torch.float64)
    corners = torch.tensor([[5, 5], [5, 6], [45, 41], [51, 50]])
    assert on_truth(corners, boxes, (10, 10)).tolist() == [
        [True, False],
        [False, False],
        [False, True],
        [False, False],
    ]
