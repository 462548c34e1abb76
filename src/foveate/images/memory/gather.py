"""Patches of images in memory, in one gather: nothing else of the image is touched."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.types import Int64, Num, Size


def gather_patches(
    images: Num[Tensor, "N c H W"],
    yx_level0: Int64[Tensor, "b n 2"],
    size: Size,
    index: Int64[Tensor, " b"] | None = None,
) -> Num[Tensor, "b n c p q"]:
    """The rectangles with these corners, 0 wherever they leave the image.

    Images may be strided views of anything; they are neither copied nor padded nor cast.

    Args:
        images: the images.
        yx_level0: the corners.
        size: height and width of the rectangles.
        index: which image each row of corners belongs to; all of them in turn by default.
    """
    _, c, height, width = images.shape
    device = images.device
    y = yx_level0[..., 0, None] + torch.arange(size[0], device=device)  # (b, n, p)
    x = yx_level0[..., 1, None] + torch.arange(size[1], device=device)  # (b, n, q)
    index = torch.arange(len(images), device=device) if index is None else index
    patches = images[
        index[:, None, None, None, None],
        torch.arange(c, device=device)[:, None, None],
        y.clamp(0, height - 1)[:, :, None, :, None],
        x.clamp(0, width - 1)[:, :, None, None, :],
    ]
    inside_y, inside_x = (y >= 0) & (y < height), (x >= 0) & (x < width)
    outside = ~(inside_y[:, :, None, :, None] & inside_x[:, :, None, None, :])
    return patches.masked_fill_(outside, 0)
