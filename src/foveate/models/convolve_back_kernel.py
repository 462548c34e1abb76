"""The gradients of 3x3 convolutions of few channels on a GPU, as Triton kernels.

`back_kernel` gets dz, the gradient before this layer's activation, and gives the gradient before
that of the layer below, whose output it has in hand as this layer's input: no gradient is written
only to be read again and masked.

Where products are of float16, so are gradients between layers: they are scaled by a power of two,
which `scale_of` finds from the largest that came in.

Sums over all pixels are taken by a fixed number of programs, each over its tiles in their order,
and then over the programs: the same numbers every time.
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
    scale_of,
    start_of,
    to_factor,
)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def back_kernel(
    dz,
    x,
    weight,
    dx,
    partial,
    largest,
    height,
    width,
    height_out,
    width_out,
    stride_image,
    stride_row,
    stride_column,
    stride_channel,
    tiles,
    tiles_down,
    tiles_across,
    channels_in: tl.constexpr,
    channels_out: tl.constexpr,
    taps: tl.constexpr,
    size: tl.constexpr,
    size_in: tl.constexpr,
    summed: tl.constexpr,
    padding: tl.constexpr,
    together: tl.constexpr,
    activation: tl.constexpr,
    precision: tl.constexpr,
    scaled: tl.constexpr,
    lifted: tl.constexpr,
    round_dz: tl.constexpr,
    round_x: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Tiles of the input's gradient and, where `summed`, this program's part of the weights'.

    A tile of x is read before that of dx is written: they may be one.
    """
    groups: tl.constexpr = 9 // taps
    half: tl.constexpr = x.dtype.element_ty == tl.float16
    if lifted:
        scale = scale_of(largest, False)
    k = tl.arange(0, size)
    n = tl.arange(0, size_in)
    sums_bias = tl.zeros((size,), tl.float32)
    sums = ()
    if summed:
        for _ in tl.static_range(groups):
            sums = sums + (tl.zeros((size_in, size), tl.float32),)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, row, column = place(tile, tiles_down, tiles_across, rows, columns)
        source = dz + image * (height_out * width_out) * channels_out
        below = x + start_of(image, height, width, stride_image, channels_in, together)
        # fmt: off
        ahead = gather_windows(
            source, row, column, height_out, width_out, 0, 0, 0,
            0, -1, padding, channels_out, taps, size, True,
        )
        # fmt: on
        exists = ((row < height) & (column < width))[:, None] & (n < channels_in)[None, :]
        if together:
            offset = (row * width + column)[:, None] * channels_in + n[None, :]
        else:
            offset = (row * stride_row + column * stride_column)[:, None]
            offset = offset + n[None, :] * stride_channel
        below = tl.load(below + offset, mask=exists, other=0.0)
        turned = tl.trans(to_factor(below, half, round_x))
        total = tl.zeros((rows * columns, size_in), tl.float32)
        added = ()
        for group in tl.static_range(groups):
            window = ahead
            if group + 1 < groups:
                # fmt: off
                ahead = gather_windows(
                    source, row, column, height_out, width_out, 0, 0, 0,
                    group + 1, -1, padding, channels_out, taps, size, True,
                )
                # fmt: on
            if lifted:
                window = window * scale
            if summed and group == groups // 2:  # the middle tap meets every pixel of dz once
                sums_bias += tl.sum(window.to(tl.float32), 0)
            tap = group * taps + k // channels_out
            factor = tl.load(
                weight
                + (tap * channels_in * channels_out + k % channels_out)[:, None]
                + (n * channels_out)[None, :],
                mask=(k < taps * channels_out)[:, None] & (n < channels_in)[None, :],
                other=0.0,
            )
            window = to_factor(window, half, round_dz)
            factor = to_factor(factor, half, precision == "tf32")
            total = tl.dot(window, factor, total, precision)
            if summed:
                added = added + (tl.dot(turned, window, sums[group], precision),)
        sums = added
        if activation == "relu":
            total = tl.where(below <= 0, 0.0, total)
        elif activation == "tanh":
            total = total * (1 - below.to(tl.float32) * below)
        elif scaled:
            total = total * scale_of(largest, True)
        offset = (row * width + column)[:, None] * channels_in + n[None, :]
        tl.store(
            dx + image * (height * width) * channels_in + offset,
            clip_half(total, half),
            mask=exists,
        )

    if summed:
        partial += tl.program_id(0).to(tl.int64) * (9 * channels_in + 1) * channels_out
        for group in tl.static_range(groups):
            tap = group * taps + k // channels_out
            offset = (tap * channels_in * channels_out + k % channels_out)[None, :]
            offset = offset + (n * channels_out)[:, None]
            used = (n < channels_in)[:, None] & (k < taps * channels_out)[None, :]
            tl.store(partial + offset, sums[group], mask=used)
        middle = (k // channels_out) == taps // 2
        offset = 9 * channels_in * channels_out + k % channels_out
        tl.store(partial + offset, sums_bias, mask=middle & (k < taps * channels_out))


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def weights_kernel(
    dz,
    x,
    partial,
    largest,
    height,
    width,
    height_out,
    width_out,
    stride_image,
    stride_row,
    stride_column,
    stride_channel,
    tiles,
    tiles_down,
    tiles_across,
    channels_in: tl.constexpr,
    channels_out: tl.constexpr,
    taps: tl.constexpr,
    size: tl.constexpr,
    size_out: tl.constexpr,
    padding: tl.constexpr,
    together: tl.constexpr,
    precision: tl.constexpr,
    lifted: tl.constexpr,
    round_dz: tl.constexpr,
    round_x: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """This program's part of the gradient of the weights and the bias."""
    groups: tl.constexpr = 9 // taps
    used: tl.constexpr = taps * channels_in
    half: tl.constexpr = x.dtype.element_ty == tl.float16
    if lifted:
        scale = scale_of(largest, False)
    k = tl.arange(0, size)
    n = tl.arange(0, size_out)
    sums_bias = tl.zeros((size_out,), tl.float32)
    sums = ()
    for _ in tl.static_range(groups):
        sums = sums + (tl.zeros((size, size_out), tl.float32),)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, row, column = place(tile, tiles_down, tiles_across, rows, columns)
        exists = (row < height_out) & (column < width_out)
        above = tl.load(
            dz
            + image * (height_out * width_out) * channels_out
            + (row * width_out + column)[:, None] * channels_out
            + n[None, :],
            mask=exists[:, None] & (n < channels_out)[None, :],
            other=0.0,
        )
        if padding == 0:
            row = tl.minimum(row, height_out - 1)
            column = tl.minimum(column, width_out - 1)
        if lifted:
            above = above * scale
        sums_bias += tl.sum(above.to(tl.float32), 0)
        above = to_factor(above, half, round_dz)
        added = ()
        for group in tl.static_range(groups):
            # fmt: off
            window = gather_windows(
                x + start_of(image, height, width, stride_image, channels_in, together),
                row, column, height, width, stride_row, stride_column, stride_channel,
                group, 1, padding, channels_in, taps, size, together,
            )
            # fmt: on
            turned = tl.trans(to_factor(window, half, round_x))
            added = added + (tl.dot(turned, above, sums[group], precision),)
        sums = added

    partial += tl.program_id(0).to(tl.int64) * (9 * channels_in + 1) * channels_out
    for group in tl.static_range(groups):
        offset = (group * used + k)[:, None] * channels_out + n[None, :]
        mask = (k < used)[:, None] & (n < channels_out)[None, :]
        tl.store(partial + offset, sums[group], mask=mask)
    offset = 9 * channels_in * channels_out + n
    tl.store(partial + offset, sums_bias, mask=n < channels_out)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def total_kernel(
    partial,
    d_weight,
    d_bias,
    largest,
    programs,
    stride_out,
    stride_in,
    stride_row,
    stride_column,
    channels_in: tl.constexpr,
    channels_out: tl.constexpr,
    biased: tl.constexpr,
    scaled: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Sums what the programs found, (tap, channel in, channel out), into the layer's own layout."""
    length: tl.constexpr = (9 * channels_in + 1) * channels_out
    k = tl.program_id(0) * columns + tl.arange(0, columns)
    sums = tl.zeros((rows, columns), tl.float32)
    for first in range(0, programs, rows):
        program = first + tl.arange(0, rows)
        sums += tl.load(
            partial + program[:, None].to(tl.int64) * length + k[None, :],
            mask=(program < programs)[:, None] & (k < length)[None, :],
            other=0.0,
        )
    total = tl.sum(sums, 0)
    if scaled:
        total = total * scale_of(largest, True)
    row_of = k // channels_out
    tap = row_of // channels_in
    channel_out = k % channels_out
    offset = channel_out * stride_out + row_of % channels_in * stride_in
    offset += tap // 3 * stride_row + tap % 3 * stride_column
    tl.store(d_weight + offset, total, mask=tap < 9)
    if biased:
        tl.store(d_bias + channel_out, total, mask=(tap == 9) & (k < length))
