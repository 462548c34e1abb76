"""Local contrast in one launch on a GPU, where shifting and comparing takes some twenty."""

from __future__ import annotations

from typing import no_type_check

import triton
import triton.language as tl
from torch import Tensor

from foveate.types import Float

_BLOCK = 512


@triton.jit(do_not_specialize=["height", "width"])
@no_type_check
def _contrast(
    overview,
    contrast,
    height,
    width,
    stride_image,
    stride_channel,
    stride_row,
    stride_column,
    channels: tl.constexpr,
    reach: tl.constexpr,
    block: tl.constexpr,
):
    """Pixels of one image: the mean over the channels of the brightest minus the darkest."""
    image = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    row, column = pixel // width, pixel % width
    total = tl.zeros((block,), tl.float32)
    for channel in tl.static_range(channels):
        source = overview + image * stride_image + channel * stride_channel
        brightest = tl.full((block,), float("-inf"), tl.float32)
        darkest = tl.full((block,), float("inf"), tl.float32)
        for down in tl.static_range(2 * reach + 1):
            y = tl.minimum(tl.maximum(row + down - reach, 0), height - 1)
            for across in tl.static_range(2 * reach + 1):
                x = tl.minimum(tl.maximum(column + across - reach, 0), width - 1)
                value = tl.load(source + y * stride_row + x * stride_column)
                brightest = tl.maximum(brightest, value, tl.PropagateNan.ALL)
                darkest = tl.minimum(darkest, value, tl.PropagateNan.ALL)
        total += brightest - darkest
    pixels = height * width
    tl.store(contrast + image * pixels + pixel, total / channels, mask=pixel < pixels)


def contrast_on_gpu(overview: Float[Tensor, "b c oh ow"], window: int) -> Float[Tensor, "b oh ow"]:
    """See `local_contrast`; the overview is of float32."""
    b, channels, height, width = overview.shape
    contrast = overview.new_empty(b, height, width)
    _contrast[(triton.cdiv(height * width, _BLOCK), b)](
        overview,
        contrast,
        height,
        width,
        *overview.stride(),
        channels=channels,
        reach=window // 2,
        block=_BLOCK,
    )
    return contrast
