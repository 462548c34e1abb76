"""Batches that are read in the background are those that are read at once."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Picture

from foveate import open_image
from foveate.errors import DataError, InputError
from foveate.images import (
    AheadBatch,
    AugmentedBatch,
    Choice,
    Form,
    ImageBatch,
    ListBatch,
    Pending,
    SeenBatch,
    TensorBatch,
    TensorImage,
    Variation,
    as_batch,
)
from foveate.images.memory.packed import Packed
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


def looking_at(corners: torch.Tensor) -> Glance:
    where = corners.device
    draw = Draw(corners[..., 0], torch.rand(2, 2, device=where))
    return Glance(torch.zeros(2, 5, 5, device=where), draw, corners)


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_read_ahead_is_what_is_read(
    files: ImageBatch, augmented: bool, again: bool, device: torch.device
) -> None:
    batch = varied(files) if augmented else files
    ahead, now = AheadBatch(batch, device, OVERVIEW), batch.to(device)
    glance = looking_at(CORNERS.to(device))
    overviewed = ahead.overviewed()
    corners = overviewed.locate(glance.yx_level0, (16, 12))
    ahead.begin_patches(Choice.of(glance, corners), (16, 12))
    seen = ahead.seen()
    if again:  # as a recording does
        overviewed, seen = (
            one.with_sources(tuple(source.clone() for source in one.sources))
            for one in (overviewed, seen)
        )
    form = Form(device, torch.float32)
    for one in (overviewed, seen):
        assert one.sizes == now.sizes
        assert torch.equal(one.overviews(OVERVIEW), now.overviews(OVERVIEW))
        inputs = now.overview_inputs(OVERVIEW, form)
        torch.testing.assert_close(one.overview_inputs(OVERVIEW, form), inputs, rtol=0, atol=1e-6)
    assert seen.glance is not None
    patches = seen.read_patches(seen.glance.yx_level0, (16, 12))
    assert torch.equal(patches, now.read_patches(glance.yx_level0, (16, 12)))
    assert patches.device.type == device.type
    assert torch.equal(seen.glance.draw.weight, glance.draw.weight)


def test_images_that_are_turned(tmp_path: Path, device: torch.device) -> None:
    chance = np.random.default_rng(0)
    for side in (80, 81):
        pixels = chance.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Picture.fromarray(pixels).save(tmp_path / f"{side}.png")
    files = as_batch([open_image(tmp_path / f"{side}.png") for side in (80, 81)])
    variation = Variation.draw(2, (20, 20), torch.Generator().manual_seed(1), turn=True)
    assert variation.turn.any()
    batch = AugmentedBatch(files, variation, (20, 20), turns=True)
    ahead, now = AheadBatch(batch, device, (20, 20)), batch.to(device)
    overviewed, corners = ahead.overviewed(), CORNERS.to(device)
    assert torch.equal(overviewed.overviews((20, 20)), now.overviews((20, 20)))
    choice = Choice.of(looking_at(corners), overviewed.locate(corners, (16, 16)))
    ahead.begin_patches(choice, (16, 16))
    seen = ahead.seen()
    assert seen.glance is not None
    patches = seen.read_patches(seen.glance.yx_level0, (16, 16))
    assert torch.equal(patches, now.read_patches(corners, (16, 16)))


def test_what_is_seen_is_all_that_is_there(files: ImageBatch) -> None:
    ahead = AheadBatch(files, torch.device("cpu"), OVERVIEW)
    with pytest.raises(InputError, match="begin_patches"):
        ahead.seen()
    with pytest.raises(InputError, match="only the patches that were chosen"):
        ahead.overviewed().read_patches(CORNERS, (16, 12))
    ahead.begin_patches(Choice.of(looking_at(CORNERS), CORNERS), (16, 12))
    seen = ahead.seen()
    assert seen.glance is not None
    for corners, size in [(CORNERS, (16, 12)), (seen.glance.yx_level0, (5, 6))]:
        with pytest.raises(InputError, match="only the patches that were chosen"):
            seen.read_patches(corners, size)
    for ask in (seen.overviews, lambda size: seen.overview_inputs(size, Form(ahead.device))):
        with pytest.raises(InputError, match="only overviews of"):
            ask((7, 5))


def test_which_can_take_whose_place(files: ImageBatch) -> None:
    """The sizes of images are told by tensors; whether they are varied is not."""
    plain, turned = (
        AheadBatch(one, torch.device("cpu"), OVERVIEW) for one in (files, varied(files))
    )
    plain.begin_patches(Choice.of(looking_at(CORNERS), CORNERS), (16, 12))
    small = Packed.of([torch.ones(2, 2, dtype=torch.int64)])
    smaller = SeenBatch(torch.zeros(2, 3, *OVERVIEW), small, [(1, 1)] * 2)
    assert smaller.kind == plain.overviewed().kind
    kinds = {one.kind for one in (plain.overviewed(), plain.seen(), turned.overviewed())}
    assert len(kinds) == 3


def test_a_file_that_fails_says_so_when_it_is_asked_for(tmp_path: Path) -> None:
    image = CASES["pyramid"](tmp_path / "image").image
    (tmp_path / "image").write_bytes(b"")
    image.close()
    ahead = AheadBatch(ListBatch([image]), torch.device("cpu"), OVERVIEW)
    with pytest.raises(DataError, match="cannot"):
        ahead.overviewed()


def test_which_batches_are_read_from_files(files: ImageBatch) -> None:
    pixels = torch.zeros(2, 3, 40, 30)
    assert files.in_files
    assert varied(files).in_files
    assert not TensorBatch(pixels).in_files
    assert not ListBatch([TensorImage(image) for image in pixels]).in_files
    assert not varied(TensorBatch(pixels)).in_files
    assert ListBatch([TensorImage(pixels[0]), open_image(pixels[1].numpy())]).in_files is False


def test_memory_is_given_back_without_a_sweep(files: ImageBatch) -> None:
    gc.collect()
    gc.disable()
    try:
        ahead = AheadBatch(files, torch.device("cpu"), OVERVIEW)
        ahead.begin_patches(Choice.of(looking_at(CORNERS), CORNERS), (16, 12))
        held = weakref.ref(ahead.seen().patches)
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
