"""3x3 convolutions of few channels on a GPU, as Triton kernels.

A tile of pixels is gathered with its neighbours into a matrix, whose columns are (tap, channel),
and multiplied by the weights; a tap is one of the nine places of the window. The columns come in
groups of one, three or nine taps, so that little of a matrix is padding. Between the layers,
channels lie together in memory. `back` gets dz, the gradient before this layer's activation, and
gives the gradient before that of the layer below, whose output it has in hand as this layer's
input: no gradient is written only to be read again and masked.

Sums over all pixels are taken by a fixed number of programs, each over its tiles in their order,
and then over the programs: the same numbers every time.
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
def _round(values, rounded: tl.constexpr):
    """The nearest numbers of 10 bits after the point: of more, matrix units drop the rest."""
    if rounded:
        bits = values.to(tl.int32, bitcast=True)
        values = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return values


@triton.jit
@no_type_check
def _place(tile, tiles_down, tiles_across, rows: tl.constexpr, columns: tl.constexpr):
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
def _start(image, height, width, stride_image, channels: tl.constexpr, together: tl.constexpr):
    """Where an image begins; the compiler sees that many channels together are aligned."""
    if together:
        return image * (height * width) * channels
    return image * stride_image


@triton.jit
@no_type_check
def _gather(
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
    round_y: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """A tile of the output: windows times weights, and the activation."""
    groups: tl.constexpr = 9 // taps
    used: tl.constexpr = taps * channels_in
    image, row, column = _place(tl.program_id(0), tiles_down, tiles_across, rows, columns)
    x += _start(image, height, width, stride_image, channels_in, together)
    y += image * (height_out * width_out) * channels_out
    k = tl.arange(0, size)
    written = (row < height_out) & (column < width_out)
    pixel = row * width_out + column
    if padding == 0:  # a pixel beyond the end looks where the last one does: no window is cut off
        row = tl.minimum(row, height_out - 1)
        column = tl.minimum(column, width_out - 1)

    if channels_out == 1:
        products = tl.zeros((rows * columns, size), tl.float32)
        for group in tl.static_range(groups):
            # fmt: off
            window = _gather(
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
        ahead = _gather(
            x, row, column, height, width, stride_row, stride_column, stride_channel,
            0, 1, padding, channels_in, taps, size, together,
        )
        # fmt: on
        for group in tl.static_range(groups):
            window = ahead
            if group + 1 < groups:
                # fmt: off
                ahead = _gather(
                    x, row, column, height, width, stride_row, stride_column, stride_channel,
                    group + 1, 1, padding, channels_in, taps, size, together,
                )
                # fmt: on
            factor = tl.load(
                weight + (group * used + k)[:, None] * channels_out + n[None, :],
                mask=(k < used)[:, None] & (n < channels_out)[None, :],
                other=0.0,
            )
            factor = _round(factor, precision == "tf32")
            total = tl.dot(_round(window, round_x), factor, total, precision)
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
    tl.store(y + pixel, _round(total, round_y), mask=written)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def back_kernel(
    dz,
    x,
    weight,
    dx,
    partial,
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
    round_dz: tl.constexpr,
    round_x: tl.constexpr,
    round_dx: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Tiles of the input's gradient and, where `summed`, this program's part of the weights'."""
    groups: tl.constexpr = 9 // taps
    k = tl.arange(0, size)
    n = tl.arange(0, size_in)
    sums_bias = tl.zeros((size,), tl.float32)
    sums = ()
    if summed:
        for _ in tl.static_range(groups):
            sums = sums + (tl.zeros((size_in, size), tl.float32),)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, row, column = _place(tile, tiles_down, tiles_across, rows, columns)
        source = dz + image * (height_out * width_out) * channels_out
        below = x + _start(image, height, width, stride_image, channels_in, together)
        # fmt: off
        ahead = _gather(
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
        turned = tl.trans(_round(below, round_x))
        total = tl.zeros((rows * columns, size_in), tl.float32)
        added = ()
        for group in tl.static_range(groups):
            window = ahead
            if group + 1 < groups:
                # fmt: off
                ahead = _gather(
                    source, row, column, height_out, width_out, 0, 0, 0,
                    group + 1, -1, padding, channels_out, taps, size, True,
                )
                # fmt: on
            if summed and group == groups // 2:  # the middle tap meets every pixel of dz once
                sums_bias += tl.sum(window, 0)
            tap = group * taps + k // channels_out
            factor = tl.load(
                weight
                + (tap * channels_in * channels_out + k % channels_out)[:, None]
                + (n * channels_out)[None, :],
                mask=(k < taps * channels_out)[:, None] & (n < channels_in)[None, :],
                other=0.0,
            )
            window = _round(window, round_dz)
            factor = _round(factor, precision == "tf32")
            total = tl.dot(window, factor, total, precision)
            if summed:
                added = added + (tl.dot(turned, window, sums[group], precision),)
        sums = added
        if activation == "relu":
            total = tl.where(below <= 0, 0.0, total)
        elif activation == "tanh":
            total = total * (1 - below * below)
        offset = (row * width + column)[:, None] * channels_in + n[None, :]
        tl.store(
            dx + image * (height * width) * channels_in + offset,
            _round(total, round_dx),
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
    round_dz: tl.constexpr,
    round_x: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """This program's part of the gradient of the weights and the bias."""
    groups: tl.constexpr = 9 // taps
    used: tl.constexpr = taps * channels_in
    k = tl.arange(0, size)
    n = tl.arange(0, size_out)
    sums_bias = tl.zeros((size_out,), tl.float32)
    sums = ()
    for _ in tl.static_range(groups):
        sums = sums + (tl.zeros((size, size_out), tl.float32),)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, row, column = _place(tile, tiles_down, tiles_across, rows, columns)
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
        sums_bias += tl.sum(above, 0)
        above = _round(above, round_dz)
        added = ()
        for group in tl.static_range(groups):
            # fmt: off
            window = _gather(
                x + _start(image, height, width, stride_image, channels_in, together),
                row, column, height, width, stride_row, stride_column, stride_channel,
                group, 1, padding, channels_in, taps, size, together,
            )
            # fmt: on
            turned = tl.trans(_round(window, round_x))
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
    programs,
    stride_out,
    stride_in,
    stride_row,
    stride_column,
    channels_in: tl.constexpr,
    channels_out: tl.constexpr,
    biased: tl.constexpr,
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
    row_of = k // channels_out
    tap = row_of // channels_in
    channel_out = k % channels_out
    offset = channel_out * stride_out + row_of % channels_in * stride_in
    offset += tap // 3 * stride_row + tap % 3 * stride_column
    tl.store(d_weight + offset, total, mask=tap < 9)
    if biased:
        tl.store(d_bias + channel_out, total, mask=(tap == 9) & (k < length))
