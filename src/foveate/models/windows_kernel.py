"""The windows of 3x3 convolutions, gathered in Triton: what the kernels of both directions share.

A tile of pixels is gathered with its neighbours into a matrix, whose columns are (tap, channel); a
tap is one of the nine places of the window. The columns come in groups of one, three or nine taps,
so that little of a matrix is padding.
"""

from __future__ import annotations

from typing import no_type_check

import triton
import triton.language as tl

SIZES = [
    *("height", "width", "height_out", "width_out"),
    *("tiles", "tiles_down", "tiles_across", "programs"),
]
"""Numbers that a kernel is not compiled anew for."""


@triton.jit
@no_type_check
def round_bits(values, rounded: tl.constexpr):
    """The nearest numbers of 10 bits after the point: of more, matrix units drop the rest."""
    if rounded:
        bits = values.to(tl.int32, bitcast=True)
        values = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return values


@triton.jit
@no_type_check
def to_factor(values, half: tl.constexpr, rounded: tl.constexpr):
    """As a matrix unit takes them: float16, or float32 that may have to be rounded to TF32."""
    return values.to(tl.float16) if half else round_bits(values.to(tl.float32), rounded)


@triton.jit
@no_type_check
def scale_of(largest, inverse: tl.constexpr):
    """A power of two that brings gradients within float16, given the largest; or 1 / it.

    The largest becomes 16 to 32: a network may make it 2000 times larger on its way down before it
    is clipped, and what is 2**-18 of it still has all its bits.
    """
    exponent = (tl.load(largest).to(tl.int32, bitcast=True) >> 23) & 0xFF
    exponent = tl.minimum(258 - exponent, 253)
    if inverse:
        exponent = 254 - exponent
    return (exponent << 23).to(tl.float32, bitcast=True)


@triton.jit
@no_type_check
def clip_half(values, clipped: tl.constexpr):
    """What float16 can hold; it is wide enough for any network but a broken one."""
    if clipped:
        values = tl.where(values > 65504.0, 65504.0, values)
        values = tl.where(values < -65504.0, -65504.0, values)
    return values


@triton.jit
@no_type_check
def place(tile, tiles_down, tiles_across, rows: tl.constexpr, columns: tl.constexpr):
    """The image of a tile, and the row and column of each of its pixels."""
    pixel = tl.arange(0, rows * columns)
    image = tile // (tiles_down * tiles_across)
    down = tile // tiles_across % tiles_down
    across = tile % tiles_across
    row = down * rows + pixel // columns
    column = across * columns + pixel % columns
    return image.to(tl.int64), row, column


@triton.jit
@no_type_check
def start_of(image, height, width, stride_image, channels: tl.constexpr, together: tl.constexpr):
    """Where an image begins; the compiler sees that many channels together are aligned."""
    if together:
        return image * (height * width) * channels
    return image * stride_image


@triton.jit
@no_type_check
def gather_windows(
    source,
    row,
    column,
    height,
    width,
    stride_row,
    stride_column,
    stride_channel,
    group: tl.constexpr,
    sign: tl.constexpr,
    padding: tl.constexpr,
    channels: tl.constexpr,
    taps: tl.constexpr,
    size: tl.constexpr,
    together: tl.constexpr,
):
    """What lies at the taps of a group around each pixel: (pixels, taps x channels), padded by 0.

    sign 1 looks at what a pixel of the output is made of, -1 at what a pixel of the input goes to.
    """
    k = tl.arange(0, size)
    if taps == 1:
        y = (row + sign * (group // 3 - padding))[:, None]
        x = (column + sign * (group % 3 - padding))[:, None]
        channel = k[None, :]
    else:
        tap = group * taps + k // channels
        y = row[:, None] + sign * (tap // 3 - padding)[None, :]
        x = column[:, None] + sign * (tap % 3 - padding)[None, :]
        channel = (k % channels)[None, :]
    if together:
        offset = (y * width + x) * channels + channel
    else:
        offset = y * stride_row + x * stride_column + channel * stride_channel
    whole: tl.constexpr = sign == 1 and padding == 0
    if whole and size == taps * channels:
        values = tl.load(source + offset)
    elif whole:
        values = tl.load(source + offset, mask=(k < taps * channels)[None, :], other=0.0)
    else:
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        if size > taps * channels:
            inside = inside & (k < taps * channels)[None, :]
        values = tl.load(source + offset, mask=inside, other=0.0)
    return values
