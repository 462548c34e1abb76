from __future__ import annotations

from pathlib import Path

import pytest
import tifffile
import torch
from PIL import Image as PillowImage
from torch import Tensor

from foveate import open_image, read_patches
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
    as_batch,
)
from foveate.types import Size
from images.example_files import coloured
from models.building import small_model


def test_what_becomes_what() -> None:
    tensor = torch.zeros(2, 3, 8, 9)
    assert isinstance(as_batch(tensor), TensorBatch)
    assert isinstance(as_batch(tensor.permute(0, 2, 3, 1).numpy()), TensorBatch)
    assert isinstance(as_batch(list(tensor)), ListBatch)
    batch = as_batch(tensor)
    assert as_batch(batch) is batch
    assert (len(batch), batch.sizes) == (2, [(8, 9)] * 2)


def test_an_overview_of_the_image_s_own_size_is_the_image() -> None:
    tensor = torch.rand(2, 3, 8, 9)
    assert as_batch(tensor).overviews((8, 9)) is tensor


class Counted(TensorImage):
    """An image that counts how often its overview was asked for."""

    asked = 0

    def overview(self, size: Size) -> Tensor:
        self.asked += 1
        return super().overview(size)


def test_overviews_that_are_fetched_are_not_made_again() -> None:
    images = [Counted(torch.rand(3, 18, 19)), Counted(torch.rand(3, 17, 16))]
    variation = Variation.draw(2, (4, 5), torch.Generator().manual_seed(0))
    listed = ListBatch(list(images))
    for batch in (listed, AugmentedBatch(listed, variation, (4, 5))):
        expected = batch.overviews((4, 5))
        fetched = batch.prefetch((4, 5))
        asked = [image.asked for image in images]
        assert torch.equal(fetched.to("cpu").overviews((4, 5)), expected)
        assert [image.asked for image in images] == asked
        assert fetched.overviews((5, 5)).shape[2:] == (5, 5)
        assert [image.asked for image in images] != asked


def test_what_has_its_overviews_at_hand_fetches_none() -> None:
    where = torch.tensor([1, 0])
    pooled = PooledBatch(ImagePool(torch.rand(2, 3, 8, 9)), where, where)
    assert pooled.prefetch((4, 5)) is pooled


@pytest.mark.parametrize("square", [False, True])
def test_a_pool_of_different_sizes_is_a_list_of_its_images(
    square: bool, device: torch.device
) -> None:
    sizes = [(60, 60), (48, 48), (31, 31)] if square else [(60, 50), (48, 70), (31, 33)]
    images = [coloured(*size, level=i) for i, size in enumerate(sizes)]
    room = torch.zeros(3, 3, 60, 60 if square else 70, dtype=torch.uint8)
    pool = ImagePool(room, sizes=sizes)
    for i, image in enumerate(images):
        pool.image(i)[...] = torch.from_numpy(image).permute(2, 0, 1)
    where = torch.tensor([2, 0, 1, 2])
    pooled = PooledBatch(pool, where, where).to(device)
    listed = ListBatch([TensorImage(pool.image(i)) for i in where.tolist()])
    assert pooled.sizes == listed.sizes
    assert pooled.square is square
    generator = torch.Generator().manual_seed(0)
    yx = torch.randint(-15, 60, (4, 5, 2), generator=generator)
    varied = Variation.draw(4, (12, 12), generator, mirror=True, turn=square)
    for turns, lens in ((False, None), (square, varied)):
        one, other = (
            batch if lens is None else AugmentedBatch(batch, lens, (12, 12), turns)
            for batch in (pooled, listed)
        )
        one = one.to(device)
        patches = one.read_patches(yx.to(device), (9, 9))
        torch.testing.assert_close(patches.cpu(), other.read_patches(yx, (9, 9)), rtol=0, atol=1e-6)
        inputs = one.read_inputs(yx.to(device), (9, 9), Form(device))[1]
        expected = other.read_inputs(yx, (9, 9), Form(torch.device("cpu")))[1]
        torch.testing.assert_close(inputs.cpu(), expected, rtol=0, atol=1e-6)
        away = one.overviews((12, 12)).cpu().float() - other.overviews((12, 12)).float()
        assert away.abs().max() <= (1 if lens is None else 1.5 / 255)  # rounded halves


def test_a_model_sees_a_pool_of_different_sizes_as_it_sees_a_list(device: torch.device) -> None:
    sizes = [(200, 150), (120, 180), (160, 160)]
    pool = ImagePool(torch.zeros(3, 3, 200, 180, dtype=torch.uint8), sizes=sizes)
    for i in range(3):
        pool.image(i).random_(0, 256)
    where = torch.tensor([1, 2, 0])
    model = small_model().to(device).eval()
    with torch.no_grad():
        listed = model([pool.image(i).to(device) for i in where.tolist()])
        pooled = model(PooledBatch(pool, where, where).to(device))
    assert torch.equal(pooled.yx_level0, listed.yx_level0)
    assert torch.equal(pooled.patches.cpu(), listed.patches.cpu())
    torch.testing.assert_close(pooled.logits, listed.logits)


def test_batches_move(device: torch.device) -> None:
    tensors = as_batch(torch.rand(2, 3, 8, 9)).to(device)
    assert tensors.overviews((4, 4)).device.type == device.type
    listed = as_batch([torch.rand(3, 8, 9)])
    moved = listed.to(device)
    assert moved.overviews((4, 4)).device.type == device.type
    corners = torch.zeros(1, 2, 2, dtype=torch.int64)
    assert moved.read_patches(corners, (4, 4)).device.type == device.type
    assert listed.read_patches(corners, (4, 4)).device.type == "cpu"
    if device.type == "cuda":
        pinned = as_batch(torch.rand(2, 3, 8, 9)).pin_memory()
        assert isinstance(pinned, TensorBatch)
        assert pinned.pixels.is_pinned()
        assert isinstance(listed.pin_memory(), ImageBatch)


def test_batches_of_files_move(device: torch.device, tmp_path: Path) -> None:
    pixels = [coloured(50, 60), coloured(70, 40)]
    for i, image in enumerate(pixels):
        PillowImage.fromarray(image).save(tmp_path / f"{i}.png")
    files = as_batch(sorted(tmp_path.iterdir()))
    memory = as_batch([torch.from_numpy(image).permute(2, 0, 1) for image in pixels])
    yx = torch.tensor([[[3, 4], [-5, 50]], [[60, 30], [0, 0]]])
    for batch in (files, files.to(device), files.pin_memory().to(device)):
        patches = batch.read_patches(yx.to(device), (16, 16))
        assert torch.equal(patches.cpu(), memory.read_patches(yx, (16, 16)))
        overviews = batch.overviews((9, 8)).cpu().int()
        assert (overviews - memory.overviews((9, 8)).int()).abs().max() <= 1  # rounded halves
        if batch is not files:
            assert patches.device.type == batch.overviews((9, 8)).device.type == device.type
    if device.type == "cuda":
        assert files.pin_memory().read_patches(yx, (16, 16)).is_pinned()
        assert files.pin_memory().overviews((9, 8)).is_pinned()


def test_files_and_memory_in_one_batch(tmp_path: Path) -> None:
    PillowImage.fromarray(coloured(50, 60)).save(tmp_path / "a.png")
    tensor = torch.from_numpy(coloured(50, 60)).permute(2, 0, 1)
    yx = torch.tensor([[[3, 4]], [[3, 4]]])
    patches = read_patches([tmp_path / "a.png", tensor], yx, (16, 16))
    assert torch.equal(patches[0], patches[1])


def test_a_model_looks_at_files(tmp_path: Path) -> None:
    pixels = [coloured(200, 300), coloured(260, 240)]
    for i, image in enumerate(pixels):
        tifffile.imwrite(tmp_path / f"{i}.tif", image, photometric="rgb", tile=(64, 64))
    model = small_model().eval()
    seen = model(sorted(tmp_path.iterdir()))
    tensors = [torch.from_numpy(image).permute(2, 0, 1) for image in pixels]
    assert torch.equal(seen.patches, read_patches(tensors, seen.yx_level0, model.patch_size))
    torch.testing.assert_close(seen.log_attention, model(tensors).log_attention, atol=0.2, rtol=0.1)


def test_files_of_different_channels_are_no_batch(tmp_path: Path) -> None:
    PillowImage.fromarray(coloured(20, 20)).save(tmp_path / "a.png")
    PillowImage.fromarray(coloured(20, 20)[..., 0]).save(tmp_path / "b.png")
    paths = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"have \[1, 3\]; open each file .* channels=3"):
        as_batch(paths)
    assert len(as_batch([open_image(path, channels=3) for path in paths])) == 2
