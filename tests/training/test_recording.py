"""A replayed step leaves the values and gradients of the step itself."""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn

from foveate.datasets import Digits, PlacedDataset
from foveate.errors import InputError
from foveate.images import (
    AugmentedBatch,
    Form,
    ImageBatch,
    ImagePool,
    ListBatch,
    PooledBatch,
    TensorBatch,
    TensorImage,
    Variation,
)
from foveate.training import Classifier, settings_for
from foveate.training.building import build_model
from foveate.training.recording import HeldBatch, RecordedStep

SIZE = (120, 90)
OVERVIEW = (30, 30)


def pixels(seed: int, count: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 1, *SIZE), dtype=torch.uint8, generator=generator)


POOL = ImagePool(pixels(0, 20))


def ragged() -> ImagePool:
    """Twenty images, no two of which are of one size."""
    images, sizes = pixels(0, 20), [(120 - i, 70 + i) for i in range(20)]
    for image, (height, width) in zip(images, sizes, strict=True):
        image[:, height:] = 0
        image[:, :, width:] = 0
    return ImagePool(images, sizes=sizes)


RAGGED = ragged()

DIGITS = Digits(train=20, validation=1, test=1).splits().train


def batch(kind: str, seed: int, device: torch.device) -> ImageBatch:
    """Four images, others for another seed."""
    generator = torch.Generator().manual_seed(seed)
    where = torch.randperm(20, generator=generator)[:4]
    if kind == "tensor":
        return TensorBatch(pixels(seed).to(device))
    if kind == "pinned":
        known = TensorBatch(pixels(seed)).prefetch(OVERVIEW)
        return (known.pin_memory() if device.type == "cuda" else known).to(device)
    if kind == "placed":
        return DIGITS.images(where.tolist()).to(device)
    pooled = PooledBatch(RAGGED if "ragged" in kind else POOL, where, where).to(device)
    if "augmented" not in kind:
        return pooled
    variation = Variation.draw(4, OVERVIEW, generator, mirror=True, tint=0.0)
    return AugmentedBatch(pooled, variation, OVERVIEW).to(device)


KINDS = ["tensor", "pinned", "pooled", "ragged", "placed", "augmented", "ragged, augmented"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_held_batch_shows_what_replaced_it(kind: str, device: torch.device) -> None:
    held = HeldBatch(batch(kind, 0, device))
    form = Form(device)
    held.batch().overview_inputs(OVERVIEW, form)
    other = batch(kind, 1, device)
    assert held.fits(other)
    held.replace(other)
    corners = torch.tensor([[[3, 4], [50, -5]]] * 4, device=device)
    assert torch.equal(
        held.batch().overview_inputs(OVERVIEW, form), other.overview_inputs(OVERVIEW, form)
    )
    for got, expected in zip(
        held.batch().read_inputs(corners, (9, 8), form),
        other.read_inputs(corners, (9, 8), form),
        strict=True,
    ):
        assert torch.equal(got, expected)
    assert torch.equal(*(torch.as_tensor(one.extents) for one in (held.batch(), other)))
    assert len(held.batch()) == len(other)


def test_a_held_batch_fits_only_its_own_kind_and_shape() -> None:
    cpu = torch.device("cpu")
    held = HeldBatch(batch("tensor", 0, cpu))
    assert not held.fits(batch("pooled", 0, cpu))
    assert not held.fits(batch("pinned", 0, cpu))
    assert not held.fits(TensorBatch(pixels(0, 3)))
    where = torch.arange(4)
    assert not HeldBatch(batch("pooled", 0, cpu)).fits(
        PooledBatch(ImagePool(pixels(1, 20)), where, where)
    )
    augmented = batch("augmented", 0, cpu)
    other = AugmentedBatch(TensorBatch(pixels(0)), Variation.draw(4, OVERVIEW), OVERVIEW)
    assert HeldBatch(augmented).fits(batch("augmented", 1, cpu))
    assert not HeldBatch(augmented).fits(other)


def test_files_are_not_read_from_tensors() -> None:
    files = ListBatch([TensorImage(pixels(0)[0])])
    assert files.sources == ()
    with pytest.raises(InputError, match="not read from tensors"):
        files.with_sources(())


def on_host(pool: ImagePool, device: torch.device) -> PooledBatch:
    where = torch.tensor([3, 1, 0, 2])
    return PooledBatch(pool, where, where).to(device)


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_batch_in_pinned_memory_reads_the_host(kind: str, device: torch.device) -> None:
    expected = kind == "pinned" and device.type == "cuda"
    assert batch(kind, 0, device).reads_host is expected
    if device.type == "cuda":
        pooled = on_host(ImagePool(pixels(0, 20), resident=False), device)
        varied = AugmentedBatch(pooled, Variation.draw(4, OVERVIEW), OVERVIEW).to(device)
        assert pooled.reads_host
        assert varied.reads_host


def test_a_batch_found_by_address_reads_the_host() -> None:
    images, address = pixels(0), torch.zeros(4, dtype=torch.int64)
    found = TensorBatch(images, pixels(1), address)
    assert found.reads_host
    assert AugmentedBatch(found, Variation.draw(4, OVERVIEW), OVERVIEW).reads_host
    assert not ListBatch([TensorImage(images[0])]).reads_host


class Foreign(TensorBatch):
    """A batch of somebody who does not know of pinned memory."""

    reads_host = ImageBatch.reads_host


def test_a_batch_that_says_nothing_is_taken_to_read_the_host() -> None:
    assert Foreign(pixels(0)).reads_host


class Unrecorded(RecordedStep):
    """A step of nothing, as a machine without CUDA graphs can replay it."""

    def _record(self, images: ImageBatch, labels: Tensor) -> None:
        self._held, self._labels = HeldBatch(images), labels.clone()
        self._generator = torch.Generator()
        self._graph = Mock()
        self._values, self._gradients = {}, []


def test_a_step_keeps_what_reads_the_host_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    monkeypatch.setattr("foveate.training.recording.keep_until_read", kept.append)
    step, labels = Unrecorded(Mock(), nn.Identity()), torch.zeros(4, dtype=torch.int64)
    address = torch.zeros(4, dtype=torch.int64)
    found = [TensorBatch(pixels(seed), pixels(seed), address) for seed in (0, 1)]
    cpu = torch.device("cpu")
    for images in (*found, *(batch(kind, seed, cpu) for kind in KINDS for seed in (0, 1))):
        step(images, labels, seed=0)
    assert kept == found


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_reading_follows_its_sources(kind: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("records CUDA graphs")
    device = torch.device("cuda", torch.cuda.current_device())
    held, form = HeldBatch(batch(kind, 0, device)), Form(device)
    corners = torch.tensor([[[3, 4], [50, -5]]] * 4, device=device)

    def read() -> tuple[Tensor, Tensor]:
        images = held.batch()
        inputs = images.read_inputs(corners, (9, 8), form)[1]
        return images.overview_inputs(OVERVIEW, form), inputs

    read()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = read()
    for seed in (1, 2, 0):
        other = batch(kind, seed, device)
        assert held.fits(other)
        held.replace(other)
        graph.replay()
        assert torch.equal(recorded[0], other.overview_inputs(OVERVIEW, form))
        assert torch.equal(recorded[1], other.read_inputs(corners, (9, 8), form)[1])


def classifier(data: PlacedDataset, device: torch.device, **changes: Any) -> Classifier:
    torch.manual_seed(0)
    settings = settings_for("digits", n_patches=4, **changes)
    model = Classifier(build_model(settings, 1, 10), settings, data.classes, 1)
    return model.to(device).train()


@pytest.mark.parametrize("augment", [False, True])
@pytest.mark.parametrize("method", ["ats", "mil", "uniform"])
def test_replayed_steps_are_the_steps_themselves(
    method: str, augment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("records CUDA graphs")
    device = torch.device("cuda")
    # Of two values that TF32 takes for the same, either may be the largest of a patch.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    data = Digits(train=64, validation=1, test=1).splits().train
    assert isinstance(data, PlacedDataset)
    changes = {"method": method, "grid": (5, 5)}
    own, replayed = classifier(data, device, **changes), classifier(data, device, **changes)
    step = RecordedStep(replayed.objective, replayed, clip=0.5)
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (own, replayed)]
    for number in range(6):
        batch = data.gather(range(8 * number, 8 * number + 8)).to(device)
        if augment:
            size = own.settings.overview_size
            variation = Variation.draw(8, size, torch.Generator().manual_seed(number))
            varied = AugmentedBatch(batch.images, variation, size).to(device)
            batch = dataclasses.replace(batch, images=varied)
        generator = torch.Generator(device).manual_seed(number)
        optimisers[0].zero_grad()
        expected = own.objective(batch.images, batch.labels, generator)
        expected["objective"].backward()
        nn.utils.clip_grad_norm_(own.parameters(), 0.5)
        values = step(batch.images, batch.labels, number)
        for name, value in expected.items():
            torch.testing.assert_close(values[name], value.detach(), rtol=1e-3, atol=1e-4)
        _assert_same_gradients(own, replayed)
        for optimiser in optimisers:
            optimiser.step()
        if number == 2:
            replayed.zero_grad()  # as Lightning does before it validates
    for mine, theirs in zip(own.buffers(), replayed.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def _assert_same_gradients(own: nn.Module, other: nn.Module) -> None:
    for (name, mine), theirs in zip(own.named_parameters(), other.parameters(), strict=True):
        if mine.grad is None or theirs.grad is None:
            assert mine.grad is theirs.grad
            continue
        scale = mine.grad.norm().clamp(min=1e-6)
        assert (mine.grad - theirs.grad).norm() / scale < 2e-2, name
