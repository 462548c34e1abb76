"""A low-resolution view of an image in memory, without a float copy of it.

The filter is the antialiased triangle of `torch.nn.functional.interpolate(mode="bilinear",
antialias=True)`: output pixel i is the mean of the pixels y around its centre (i + 1/2) s, weighed
by max(0, 1 - |y + 1/2 - (i + 1/2) s| / max(s, 1)), s = height / new height. It is linear and
separable, out = Wy image Wx^T, so the image is taken in tiles of bounded size, each cast and added
to the output pixels that it reaches: memory does not grow with the image. Bytes on a GPU take one
kernel instead, which reads them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from foveate.images.memory.device_reads import kernels_for
from foveate.types import Float, Num, Size

_TILE = 2**20
"""Pixels times channels that are held as floats at one time."""


@torch.library.custom_op(
    "foveate::resample", mutates_args=(), schema="(Tensor images, int[2] size) -> Tensor"
)
def _resample(images: Tensor, size: list[int]) -> Tensor:
    if kernels_for(images, images.device):
        from foveate.images.memory.resample_kernel import shrink

        return shrink(images, (size[0], size[1]))
    b, c, height, width = images.shape
    dtype = torch.float64 if images.dtype == torch.float64 else torch.float32
    out = images.new_zeros((b, c, *size), dtype=dtype)
    # Low tiles reach few output rows, so that Wy is small and Wx multiplies little.
    rows = min(height, math.ceil(8 * height / size[0]), max(1, _TILE // c))
    columns = min(width, max(1, _TILE // (c * rows)))
    at_once = max(1, _TILE // (c * rows * columns))
    # Half-precision matrix products would round away what antialiasing keeps.
    with torch.autocast(images.device.type, enabled=False):
        for x in _spans(width, columns):
            j, weight_x = span_weights(x, width, size[1], out)
            for y in _spans(height, rows):
                i, weight_y = span_weights(y, height, size[0], out)
                for first in range(0, b, at_once):
                    some = slice(first, first + at_once)
                    tile = images[some, :, y, x].to(dtype)
                    out[some, :, i, j] += weight_y @ tile @ weight_x.T
    if images.dtype.is_floating_point:
        return out.to(images.dtype)
    return out.add_(0.5).clamp_(0, 255).to(images.dtype)


@_resample.register_fake
def _(images: Tensor, size: list[int]) -> Tensor:
    return images.new_empty((*images.shape[:2], *size))


def resample(images: Num[Tensor, "b c H W"], size: Size) -> Num[Tensor, "b c h w"]:
    """Images at another size, antialiased, in the images' own type. No gradient flows back.

    Example:
        >>> image = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
        >>> resample(image, (2, 2))
        tensor([[[[ 4,  5],
                  [10, 11]]]], dtype=torch.uint8)
    """
    result: Tensor = _resample(images.detach(), list(size))
    return result


def _spans(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def span_weights(
    span: slice, old: int, new: int, like: Tensor, extent: float | None = None
) -> tuple[slice, Float[Tensor, "reached span"]]:
    """The output pixels that a span of input pixels reaches, and by what weight.

    Args:
        span: the input pixels, along one axis.
        old: how many input pixels there are.
        new: how many output pixels.
        like: a tensor of the wanted type and device.
        extent: how many input pixels the output covers, if not all of them.
    """
    scale = (extent or old) / new
    support = max(scale, 1.0)
    first = max(0, math.floor((span.start + 0.5 - support) / scale - 0.5))
    last = min(new, math.ceil((span.stop - 0.5 + support) / scale - 0.5) + 1)
    centre = (torch.arange(first, last, dtype=torch.float64, device=like.device) + 0.5) * scale

    def triangle(pixel: Tensor) -> Tensor:
        return (1 - (pixel + 0.5 - centre[:, None]).abs() / support).clamp(min=0)

    weight = triangle(torch.arange(span.start, span.stop, device=like.device))
    # The weights of an output pixel sum to 1 over all the pixels that exist.
    taps = torch.arange(2 * math.ceil(support) + 2, device=like.device)
    pixel = (centre[:, None] - support - 1).ceil() + taps
    total = (triangle(pixel) * ((pixel >= 0) & (pixel < old))).sum(-1, keepdim=True)
    return slice(first, last), (weight / total).to(like.dtype)
