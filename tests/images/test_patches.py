from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foveate import open_image, read_patches
from foveate.errors import InputError
from foveate.images import Image


def coloured(height: int, width: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    """An image whose colours encode their coordinates; never 0, which means outside."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([y % 251 + 1, x % 241 + 1, (y // 251 * 7 + x // 241) % 255 + 1]).to(dtype)


def read_slowly(image: Tensor, y: int, x: int, p: int, q: int) -> Tensor:
    out = image.new_zeros(image.shape[0], p, q)
    for i in range(p):
        for j in range(q):
            if 0 <= y + i < image.shape[1] and 0 <= x + j < image.shape[2]:
                out[:, i, j] = image[:, y + i, x + j]
    return out


corners = st.tuples(st.integers(-40, 70), st.integers(-40, 90))


@given(
    yx=st.lists(corners, min_size=1, max_size=3),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    dtype=st.sampled_from([torch.uint8, torch.float32, torch.float64]),
)
def test_any_offset_is_exact_and_zero_outside(
    yx: list[tuple[int, int]], size: tuple[int, int], dtype: torch.dtype
) -> None:
    image = coloured(37, 53, dtype)
    expected = torch.stack([read_slowly(image, y, x, *size) for y, x in yx])
    got = read_patches(image[None], torch.tensor([yx]), size)[0]
    assert got.dtype == dtype
    assert torch.equal(got, expected)
    one_by_one = torch.stack([open_image(image).read(corner, size) for corner in yx])
    assert torch.equal(one_by_one, expected)


def test_an_image_smaller_than_a_patch_is_padded_with_zeros() -> None:
    image = coloured(5, 4)
    patch = read_patches(image[None], torch.tensor([[[-2, -3]]]), (10, 12))[0, 0]
    assert torch.equal(patch[:, 2:7, 3:7], image)
    assert patch.count_nonzero() == image.count_nonzero()


def test_a_batch_a_list_and_arrays_read_alike(device: torch.device) -> None:
    images = torch.stack([coloured(40, 50), coloured(40, 50).flip(2)]).to(device)
    yx = torch.tensor([[[3, 4], [-2, 45]], [[38, -1], [100, 100]]], device=device)
    expected = read_patches(images, yx, (8, 6))
    assert expected.shape == (2, 2, 3, 8, 6)
    assert torch.equal(read_patches(list(images), yx, (8, 6)), expected)
    arrays = images.cpu().permute(0, 2, 3, 1).numpy()
    for numpy_images in (arrays, list(arrays)):
        assert torch.equal(read_patches(numpy_images, yx.cpu(), (8, 6)), expected.cpu())


def test_images_of_different_sizes() -> None:
    images = [coloured(40, 50), coloured(300, 20)]
    yx = torch.tensor([[[30, 40]], [[290, 10]]])
    patches = read_patches(images, yx, (5, 5))
    assert torch.equal(patches[0, 0], images[0][:, 30:35, 40:45])
    assert torch.equal(patches[1, 0], images[1][:, 290:295, 10:15])


def test_grey_arrays_have_one_channel() -> None:
    image = open_image(np.arange(12, dtype=np.float32).reshape(3, 4))
    assert (image.channels, image.size) == (1, (3, 4))
    assert image.read((0, 0), (3, 4)).flatten().tolist() == list(range(12))


def test_the_image_is_viewed_not_copied() -> None:
    array = np.zeros((30, 40, 3), np.uint8)
    image = open_image(array)
    array[10, 20, 1] = 9
    assert image.read((10, 20), (1, 1)).flatten().tolist() == [0, 9, 0]
    array.setflags(write=False)  # a memory map, say
    assert open_image(array).size == (30, 40)
    assert open_image(image) is image


def test_a_corner_on_another_device_is_brought_over(device: torch.device) -> None:
    image = coloured(9, 9).to(device)
    yx = torch.tensor([[[1, 1]]])
    assert read_patches(image[None], yx, (2, 2)).device.type == device.type
    assert read_patches([image], yx, (2, 2)).device.type == device.type


def test_an_image_that_only_knows_how_to_read() -> None:
    class Slow(Image):
        channels = 3
        levels = ((40, 50),)

        def overview(self, size: tuple[int, int]) -> Tensor:
            return torch.zeros(3, *size)

        def read(self, yx: tuple[int, int], size: tuple[int, int], level: int = 0) -> Tensor:
            return read_slowly(coloured(40, 50), *yx, *size)

    yx = torch.tensor([[[3, 4], [-2, 45]]])
    expected = read_patches(coloured(40, 50)[None], yx, (8, 6))
    assert torch.equal(read_patches([Slow()], yx, (8, 6)), expected)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(3, 9, 9), r"must be \(b, c, H, W\) and not empty, but its shape is \(3, 9"),
        (torch.zeros(1, 3, 0, 9), "not empty"),
        (torch.zeros(1, 3, 9, 9, dtype=torch.int32), r"uint8 .* or float .*, but is torch.int32"),
        (np.zeros((1, 9, 9, 3), np.uint16), r"torch.uint16; convert it first"),
        (np.zeros((1, 9, 9, 3), dtype="U3"), r"<U3; convert it first"),
        (np.zeros((1, 9, 9, 3), np.uint8)[:, ::-1], r"pass np.ascontiguousarray"),
        ([], "the list is empty"),
        ([torch.zeros(3, 9, 9), torch.zeros(1, 9, 9)], r"as many channels, but have \[1, 3\]"),
        ([torch.zeros(9, 9)], r"must be \(c, H, W\) and not empty"),
        ([3], "cannot open a int as an image; pass a path"),
        ("slide.svs", "cannot take a str as a batch of images"),
        (torch.zeros(2, 3, 9, 9), "patches of 2 images at the corners of 1"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_bad_images_say_what_to_do(images: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_patches(images, torch.zeros(1, 1, 2, dtype=torch.int64), (2, 2))


def test_bad_sizes_and_levels_say_what_to_do() -> None:
    image = coloured(9, 9)
    with pytest.raises(InputError, match=r"patches of \(0, 2\) pixels"):
        read_patches(image[None], torch.zeros(1, 1, 2, dtype=torch.int64), (0, 2))
    with pytest.raises(InputError, match="cannot read level 1 of an image in memory"):
        open_image(image).read((0, 0), (2, 2), level=1)
