"""Whatever may be passed as images, as a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from foveate.errors import InputError
from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.list_batch import ListBatch
from foveate.images.batches.stacked import TensorBatch
from foveate.images.opening import Openable, check_pixels, open_image, tensor_of
from foveate.types import Int64, Num, Size

Images = ImageBatch | Tensor | np.ndarray | Sequence[Openable]
"""A batch, a (b, c, H, W) tensor, a (b, H, W, c) array, or a list of what `open_image` takes."""


def as_batch(images: Images) -> ImageBatch:
    """Check a batch of images; nothing is copied.

    Raises:
        InputError: for an empty batch, another shape or type, or images that differ in channels.
    """
    if isinstance(images, ImageBatch):
        return images
    if isinstance(images, Tensor):
        return TensorBatch(check_pixels(images, "b", "c", "H", "W"))
    if isinstance(images, np.ndarray):
        pixels = check_pixels(tensor_of(images), "b", "H", "W", "c")
        return TensorBatch(pixels.permute(0, 3, 1, 2))
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise InputError(
            f"cannot take a {type(images).__name__} as a batch of images; "
            "pass a (b, c, H, W) tensor or a list of images"
        )
    opened = [open_image(image) for image in images]
    if not opened:
        raise InputError("a batch needs at least one image, but the list is empty")
    channels = {image.channels for image in opened}
    if len(channels) > 1:
        raise InputError(
            f"images of one batch must have as many channels, but have {sorted(channels)}; "
            "open each file with open_image(path, channels=3)"
        )
    return ListBatch(opened)


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
        >>> import torch
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
    return batch.read_patches(yx_level0, size)
