"""Batches of images: one tensor where all have one size, a list of images where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.gather import gather_patches
from foveate.images.image import Image
from foveate.images.opening import Openable, check_pixels, open_image, tensor_of
from foveate.images.resample import resample
from foveate.types import Int64, Num, Size

Images = Tensor | np.ndarray | Sequence[Openable]
"""A (b, c, H, W) tensor, a (b, H, W, c) array, or a list of anything `open_image` takes."""

Batch = Tensor | list[Image]
"""Images that have been checked: a (b, c, H, W) tensor or a list."""


def as_batch(images: Images) -> Batch:
    """Check a batch of images; nothing is copied.

    Raises:
        InputError: for an empty batch, another shape or type, or images that differ in channels.
    """
    if isinstance(images, Tensor):
        return check_pixels(images, "b", "c", "H", "W")
    if isinstance(images, np.ndarray):
        return check_pixels(tensor_of(images), "b", "H", "W", "c").permute(0, 3, 1, 2)
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise InputError(
            f"cannot take a {type(images).__name__} as a batch of images; "
            "pass a (b, c, H, W) tensor or a list of images"
        )
    batch = [open_image(image) for image in images]
    if not batch:
        raise InputError("a batch needs at least one image, but the list is empty")
    channels = {image.channels for image in batch}
    if len(channels) > 1:
        raise InputError(
            f"images of one batch must have as many channels, but have {sorted(channels)}; "
            "convert them to one colour space"
        )
    return batch


def sizes_of(batch: Batch) -> list[Size]:
    """The (height, width) of each image."""
    if isinstance(batch, Tensor):
        return [(batch.shape[2], batch.shape[3])] * len(batch)
    return [image.size for image in batch]


def read_overviews(images: Images, size: Size) -> Num[Tensor, "b c h w"]:
    """The overviews of a batch of images, antialiased, on the device where the images are."""
    batch = as_batch(images)
    if isinstance(batch, Tensor):
        return resample(batch, size)
    return torch.stack([image.overview(size) for image in batch])


def read_patches(
    images: Images, yx_level0: Int64[Tensor, "b n 2"], size: Size
) -> Num[Tensor, "b n c p q"]:
    """Read n patches of each image at full resolution.

    Args:
        images: a (b, c, H, W) tensor, a (b, H, W, c) array, or a list of images of any sizes.
        yx_level0: the top-left corner (y, x) of each patch; it may lie outside the image.
        size: height and width of the patches.

    Returns:
        The patches, in the type of the images and on their device; 0 outside an image.

    Example:
        >>> image = torch.arange(1, 10, dtype=torch.uint8).view(1, 1, 3, 3)
        >>> read_patches(image, torch.tensor([[[1, 1], [-1, 2]]]), (2, 2))
        tensor([[[[[5, 6],
                   [8, 9]]],
        <BLANKLINE>
                 [[[0, 0],
                   [3, 0]]]]], dtype=torch.uint8)
    """
    batch = as_batch(images)
    if len(yx_level0) != len(batch):
        raise InputError(
            f"cannot read patches of {len(batch)} images at the corners of {len(yx_level0)}; "
            "yx_level0 must be (b, n, 2)"
        )
    if min(size) < 1:
        raise InputError(f"cannot read patches of {size} pixels; both sides must be at least 1")
    if isinstance(batch, Tensor):
        return gather_patches(batch, yx_level0.to(batch.device), size)
    patches = [
        image.read_patches(corners, size) for image, corners in zip(batch, yx_level0, strict=True)
    ]
    return torch.stack(patches)
