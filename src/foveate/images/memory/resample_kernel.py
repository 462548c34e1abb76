"""A low-resolution view of uint8 images in one pass on the GPU, without a float copy of them.

The same antialiased triangle as `resample`, whose weights it takes: for each output pixel the first
pixel it sees and the weights of those from there on, along either axis.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import lru_cache
from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from foveate.types import Float, Int64, Size, UInt8

_BLOCK = 128


@triton.jit
@no_type_check
def _shrink(
    images,
    out,
    first_y,
    first_x,
    weight_y,
    weight_x,
    channels,
    new_height,
    new_width,
    stride_image,
    stride_channel,
    stride_y,
    stride_x,
    taps_y,
    taps_x,
    block: tl.constexpr,
):
    """A block of the output pixels of one row of one channel."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    there = column < new_width
    y = tl.load(first_y + row)
    x = tl.load(first_x + column, mask=there, other=0)
    source = images + (plane // channels) * stride_image + (plane % channels) * stride_channel
    total = tl.zeros((block,), dtype=tl.float32)
    for i in range(taps_y):
        line = source + (y + i) * stride_y
        down = tl.load(weight_y + i * new_height + row)
        across = tl.zeros((block,), dtype=tl.float32)
        for j in range(taps_x):
            weight = tl.load(weight_x + j * new_width + column, mask=there, other=0.0)
            # Pixels that do not exist weigh nothing, and are not read.
            value = tl.load(line + (x + j) * stride_x, mask=weight * down > 0, other=0)
            across += weight * value.to(tl.float32)
        total += down * across
    rounded = tl.minimum(tl.maximum(total + 0.5, 0.0), 255.0).to(tl.uint8)
    tl.store(out + (plane * new_height + row) * new_width + column, rounded, mask=there)


def shrink(images: UInt8[Tensor, "b c H W"], size: Size) -> UInt8[Tensor, "b c h w"]:
    """Images at another size, antialiased.

    Args:
        images: the images, on the device.
        size: height and width of the result.
    """
    b, c, height, width = images.shape
    out = torch.empty(b, c, *size, dtype=torch.uint8, device=images.device)
    first_y, weight_y = taps(height, size[0], images.device)
    first_x, weight_x = taps(width, size[1], images.device)
    on_gpu = images.device.type == "cuda"
    with torch.cuda.device(images.device) if on_gpu else nullcontext():
        _shrink[(b * c, size[0], triton.cdiv(size[1], _BLOCK))](
            images,
            out,
            first_y,
            first_x,
            weight_y,
            weight_x,
            c,
            *size,
            *images.stride(),
            len(weight_y),
            len(weight_x),
            block=_BLOCK,
            enable_fp_fusion=True,
        )
    return out


@lru_cache(maxsize=32)
def taps(
    old: int, new: int, device: torch.device
) -> tuple[Int64[Tensor, " new"], Float[Tensor, "taps new"]]:
    """The first pixel that each output pixel sees, and the weights of those from there on.

    Example:
        >>> first, weight = taps(4, 2, torch.device("cpu"))
        >>> first.tolist(), (7 * weight).T.tolist()
        ([0, 1], [[3.0, 3.0, 1.0], [1.0, 3.0, 3.0]])
    """
    scale = old / new
    support = max(scale, 1.0)
    centre = (torch.arange(new, dtype=torch.float64) + 0.5) * scale
    # A pixel counts if its centre is nearer than the support.
    first = (centre - support + 0.5).floor().clamp(min=0).long()
    pixel = first[:, None] + torch.arange(2 * math.ceil(support) + 1)
    weight = (1 - (pixel + 0.5 - centre[:, None]).abs() / support).clamp(min=0)
    weight = weight * (pixel < old)
    weight = weight[:, : int((weight > 0).sum(1).max() + (weight[:, 0] == 0).any())]
    weight = weight / weight.sum(1, keepdim=True)
    return first.to(device), weight.float().T.contiguous().to(device)
