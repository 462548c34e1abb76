"""Batches that are read in the background are those that are read at once."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest
import torch

from foveate import open_image
from foveate.errors import DataError, InputError
from foveate.images import (
    AheadBatch,
    AugmentedBatch,
    ImageBatch,
    ListBatch,
    Pending,
    TensorBatch,
    TensorImage,
    Variation,
    as_batch,
)
from foveate.types import Draw, Glance
from images.example_files import CASES

OVERVIEW = (20, 30)
CORNERS = torch.tensor([[[3, 4], [50, -5]], [[0, 90], [60, 30]]])


@pytest.fixture
def files(tmp_path: Path) -> ImageBatch:
    return as_batch([CASES[kind](tmp_path / kind).image for kind in ("pyramid", "JPEG")])


def varied(batch: ImageBatch) -> AugmentedBatch:
    variation = Variation.draw(2, OVERVIEW, torch.Generator().manual_seed(0), mirror=True)
    return AugmentedBatch(batch, variation, OVERVIEW)


@pytest.mark.parametrize("augmented", [False, True])
def test_what_is_read_ahead_is_what_is_read(
    files: ImageBatch, augmented: bool, device: torch.device
) -> None:
    batch = varied(files) if augmented else files
    ahead, now = AheadBatch(batch, device, OVERVIEW), batch.to(device)
    corners = CORNERS.to(device)
    ahead.begin_patches(corners, (16, 12))
    for size in (OVERVIEW, (7, 5)):
        assert torch.equal(ahead.overviews(size), now.overviews(size))
    expected = now.read_patches(corners, (16, 12))
    assert torch.equal(ahead.read_patches(corners, (16, 12)), expected)
    assert ahead.read_patches(corners, (16, 12)).device.type == device.type
    assert ahead.sizes == now.sizes
    assert len(ahead) == 2
    assert ahead.to(device) is ahead
    assert ahead.sources == ()


def test_other_corners_and_sizes_are_read_when_asked_for(files: ImageBatch) -> None:
    ahead = AheadBatch(files, torch.device("cpu"), OVERVIEW)
    assert torch.equal(ahead.read_patches(CORNERS, (5, 6)), files.read_patches(CORNERS, (5, 6)))
    ahead.begin_patches(CORNERS, (16, 12))
    other = CORNERS + 1
    assert torch.equal(ahead.read_patches(other, (16, 12)), files.read_patches(other, (16, 12)))
    assert torch.equal(ahead.read_patches(CORNERS, (5, 6)), files.read_patches(CORNERS, (5, 6)))


def test_what_is_seen_is_all_that_is_left(files: ImageBatch, device: torch.device) -> None:
    corners = CORNERS.to(device)
    draw = Draw(torch.zeros(2, 2, dtype=torch.int64), torch.ones(2, 2))
    glance = Glance(torch.zeros(2, 5, 5), draw, corners)
    ahead, now = AheadBatch(files, device, OVERVIEW), files.to(device)
    with pytest.raises(InputError, match="begin_patches"):
        ahead.seen(glance)
    ahead.begin_patches(corners, (16, 12))
    seen = ahead.seen(glance)
    assert torch.equal(seen.overviews(OVERVIEW), now.overviews(OVERVIEW))
    assert torch.equal(seen.read_patches(corners, (16, 12)), now.read_patches(corners, (16, 12)))
    assert seen.sizes == files.sizes
    with pytest.raises(InputError, match="only overviews of"):
        seen.overviews((7, 5))
    with pytest.raises(InputError, match="only the patches that were chosen"):
        seen.read_patches(corners + 1, (16, 12))
    again = seen.with_sources(tuple(source.clone() for source in seen.sources))
    assert again.kind == seen.kind
    assert torch.equal(again.read_patches(again.glance.yx_level0, (16, 12)), seen.patches)
    assert torch.equal(again.glance.draw.weight, draw.weight)


def test_a_file_that_fails_says_so_when_it_is_asked_for(tmp_path: Path) -> None:
    image = CASES["pyramid"](tmp_path / "image").image
    (tmp_path / "image").write_bytes(b"")
    image.close()
    ahead = AheadBatch(ListBatch([image]), torch.device("cpu"), OVERVIEW)
    with pytest.raises(DataError, match="cannot"):
        ahead.overviews(OVERVIEW)


def test_which_batches_are_read_from_files(files: ImageBatch) -> None:
    pixels = torch.zeros(2, 3, 40, 30)
    assert files.in_files
    assert varied(files).in_files
    assert AheadBatch(files, torch.device("cpu"), OVERVIEW).in_files
    assert not TensorBatch(pixels).in_files
    assert not ListBatch([TensorImage(image) for image in pixels]).in_files
    assert not varied(TensorBatch(pixels)).in_files
    assert ListBatch([TensorImage(pixels[0]), open_image(pixels[1].numpy())]).in_files is False


def test_memory_is_given_back_without_a_sweep(files: ImageBatch) -> None:
    gc.collect()
    gc.disable()
    try:
        ahead = AheadBatch(files, torch.device("cpu"), OVERVIEW)
        ahead.begin_patches(CORNERS, (16, 12))
        held = weakref.ref(ahead.read_patches(CORNERS, (16, 12)))
        assert held() is not None
        del ahead
        for _ in range(100):  # until the thread has turned to something else
            if held() is None:
                break
            time.sleep(0.01)
        assert held() is None
    finally:
        gc.enable()


def test_pending_tensors_are_made_elsewhere_and_may_wait_for_those_before() -> None:
    here = threading.get_ident()
    pending: list[Pending] = []

    def make(number: int) -> torch.Tensor:
        assert threading.get_ident() != here
        before = pending[number - 1].get() if number else torch.tensor(0)
        return before + 1

    def hand_in(number: int) -> None:
        pending.append(Pending(lambda: make(number), torch.device("cpu")))

    for number in range(50):  # many more than there are threads
        hand_in(number)
    assert [tensor.get().item() for tensor in reversed(pending)] == list(range(50, 0, -1))


def test_copies_beside_a_computation_are_whole() -> None:
    """Many rounds, so that memory is used again: each must see its own numbers."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    device = torch.device("cuda")
    host = [torch.full((2**20,), float(i)).pin_memory() for i in range(4)]
    busy = torch.rand(2048, 2048, device=device)
    pending = Pending(lambda: host[0].to(device, non_blocking=True), device)
    sums = []
    for i in range(40):
        tensor = pending.get()
        source = host[(i + 1) % 4]
        pending = Pending(lambda source=source: source.to(device, non_blocking=True), device)  # type: ignore[misc]
        busy = (busy @ busy).sigmoid()
        sums.append(tensor.double().mean())
        del tensor
    assert torch.stack(sums).tolist() == [float(i % 4) for i in range(40)]
