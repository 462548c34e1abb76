"""3x3 convolutions of few channels on a GPU, as a Triton kernel.

The windows around a tile of pixels (see `windows_kernel`) are multiplied by the weights. Between
the layers, channels lie together in memory.
"""

from __future__ import annotations

from typing import no_type_check

import triton
import triton.language as tl

from foveate.models.windows_kernel import (
    SIZES,
    clip_half,
    gather_windows,
    place,
    start_of,
    to_factor,
)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def forward_kernel(
    x,
    weight,
    bias,
    y,
    height,
    width,
    height_out,
    width_out,
    stride_image,
    stride_row,
    stride_column,
    stride_channel,
    tiles_down,
    tiles_across,
    channels_in: tl.constexpr,
    channels_out: tl.constexpr,
    taps: tl.constexpr,
    size: tl.constexpr,
    size_out: tl.constexpr,
    padding: tl.constexpr,
    together: tl.constexpr,
    biased: tl.constexpr,
    activation: tl.constexpr,
    precision: tl.constexpr,
    round_x: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """A tile of the output: windows times weights, and the activation."""
    groups: tl.constexpr = 9 // taps
    used: tl.constexpr = taps * channels_in
    half: tl.constexpr = x.dtype.element_ty == tl.float16
    image, row, column = place(tl.program_id(0), tiles_down, tiles_across, rows, columns)
    x += start_of(image, height, width, stride_image, channels_in, together)
    y += image * (height_out * width_out) * channels_out
    k = tl.arange(0, size)
    written = (row < height_out) & (column < width_out)
    pixel = row * width_out + column
    if padding == 0:  # a pixel beyond the end looks where the last one does: no window is cut off
        row = tl.minimum(row, height_out - 1)
        column = tl.minimum(column, width_out - 1)

    if channels_out == 1 and not half:
        products = tl.zeros((rows * columns, size), tl.float32)
        for group in tl.static_range(groups):
            # fmt: off
            window = gather_windows(
                x, row, column, height, width, stride_row, stride_column, stride_channel,
                group, 1, padding, channels_in, taps, size, together,
            )
            # fmt: on
            factor = tl.load(weight + group * used + k, mask=k < used, other=0.0)
            products += window * factor[None, :]
        total = tl.sum(products, 1)
        if biased:
            total += tl.load(bias)
    else:
        n = tl.arange(0, size_out)
        total = tl.zeros((rows * columns, size_out), tl.float32)
        # What the next product needs is under way while this one is taken.
        # fmt: off
        ahead = gather_windows(
            x, row, column, height, width, stride_row, stride_column, stride_channel,
            0, 1, padding, channels_in, taps, size, together,
        )
        # fmt: on
        for group in tl.static_range(groups):
            window = ahead
            if group + 1 < groups:
                # fmt: off
                ahead = gather_windows(
                    x, row, column, height, width, stride_row, stride_column, stride_channel,
                    group + 1, 1, padding, channels_in, taps, size, together,
                )
                # fmt: on
            factor = tl.load(
                weight + (group * used + k)[:, None] * channels_out + n[None, :],
                mask=(k < used)[:, None] & (n < channels_out)[None, :],
                other=0.0,
            )
            window = to_factor(window, half, round_x)
            factor = to_factor(factor, half, precision == "tf32")
            total = tl.dot(window, factor, total, precision)
        if biased:
            total += tl.load(bias + n, mask=n < channels_out, other=0.0)[None, :]
        written = written[:, None] & (n < channels_out)[None, :]
        pixel = pixel[:, None] * channels_out + n[None, :]

    if activation == "relu":
        total = tl.where(total <= 0, 0.0, total)
    elif activation == "tanh":
        decay = tl.exp(-2 * tl.abs(total))
        magnitude = (1 - decay) / (1 + decay)
        total = tl.where(total < 0, -magnitude, magnitude)
    total = clip_half(total, y.dtype.element_ty == tl.float16)
    tl.store(y + pixel, total, mask=written)
