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

from dataclasses import dataclass
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from foveate.types import Float


@dataclass(frozen=True)
class Block:
    """How a kernel is cut up.

    Attributes:
        rows: pixels that a tile is high, a power of two.
        columns: pixels that a tile is wide, a power of two.
        warps: warps of 32 threads in a program.
        programs: programs on a multiprocessor, where each goes through many tiles.
        apart: whether "back" leaves the weights to a kernel of their own.
    """

    rows: int = 8
    columns: int = 16
    warps: int = 4
    programs: int = 2
    apart: bool = False


BLOCKS: dict[tuple[str, int, int], Block] = {
    ("forward", 16, 32): Block(8, 32),
    ("forward", 32, 1): Block(4, 32),
    ("weights", 3, 8): Block(4, 8, warps=1, programs=16),
    ("weights", 8, 16): Block(4, 8, warps=1, programs=8),
    ("weights", 1, 16): Block(4, 8, warps=1, programs=16),
}
"""What was measured to be better than `block_of`'s rule: (kernel, channels in, channels out)."""


def block_of(kernel: str, channels_in: int, channels_out: int) -> Block:
    """The block of a kernel, "forward", "back", "weights" or "total", for a pair of channels.

    The rule is read off the compiler's report for Hopper (Triton 3.6): the fewest instructions for
    a pixel without spilling registers.
    """
    measured = BLOCKS.get((kernel, channels_in, channels_out))
    if measured is not None:
        return measured
    if kernel == "forward":
        return Block(8, 32) if channels_in <= 3 else Block(8, 16)
    if kernel == "back":
        few = channels_out <= 3
        return Block(8, 8, warps=2, programs=4) if few else Block(8, 16, apart=True)
    if kernel == "total":  # of a table of programs by sums
        return Block(128, 32, warps=8)
    if channels_in <= 3:
        return Block(8, 16, programs=4)
    if channels_in < 16:
        return Block(8, 8, warps=2, programs=5)
    # One warp has room for the sums of 16 x 32 channels.
    sums = max(16, _power_of_two(channels_in)) * max(16, _power_of_two(channels_out))
    warps = max(1, sums // 512)
    return Block(4, 8 * min(2, warps), warps=warps, programs=max(1, 8 // warps))


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


@dataclass(frozen=True)
class Groups:
    """The columns (tap, channel) of a gathered matrix: groups x taps = 9."""

    taps: int
    columns: int

    @classmethod
    def of(cls, channels: int, three_below: int = 16) -> Groups:
        """Nine taps of few channels, three of less than `three_below`, and one of many."""
        taps = 9 if channels <= 3 else 3 if channels < three_below else 1
        return cls(taps, max(16, _power_of_two(taps * channels)))


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
def _forward(
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
def _back(
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
def _weights(
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
def _total(
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


@dataclass(frozen=True)
class Layer:
    """What a kernel must know of a layer besides its weights.

    Attributes:
        padding: 0 or 1 rows and columns of zeros on each side.
        below: the activation that made its input, "relu" or "tanh"; "none" for the first layer.
        above: the activation that follows; "none" for the last layer.
        precision: of the products, "tf32" or "ieee".
    """

    padding: int
    below: str
    above: str
    precision: str

    # What passes between two layers is rounded where it is written, once and not nine times.

    @property
    def rounds_inside(self) -> dict[str, bool]:
        """Whether an input and a gradient are rounded when they are read."""
        tf32 = self.precision == "tf32"
        return {"round_x": tf32 and self.below == "none", "round_dz": tf32 and self.above == "none"}


def forward(
    x: Float[Tensor, "b i h w"],
    weight: Float[Tensor, "3 3 i o"],
    bias: Float[Tensor, " o"] | None,
    layer: Layer,
) -> Float[Tensor, "b o y x"]:
    """The output of a layer, channels together in memory.

    Args:
        x: its input, laid out in any way.
        weight: its weights, contiguous.
        bias: added to each channel, contiguous.
        layer: the rest of it.
    """
    b, channels_in, height, width = x.shape
    channels_out = weight.shape[3]
    height_out, width_out = height + 2 * layer.padding - 2, width + 2 * layer.padding - 2
    y = _channels_together(b, channels_out, height_out, width_out, x)
    groups, block = Groups.of(channels_in), block_of("forward", channels_in, channels_out)
    down, across = triton.cdiv(height_out, block.rows), triton.cdiv(width_out, block.columns)
    _launch(
        _forward,
        b * down * across,
        block,
        *(x, weight, weight if bias is None else bias, y),
        *(height, width, height_out, width_out, *_strides(x), down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_out=max(16, _power_of_two(channels_out)),
        padding=layer.padding,
        together=_is_together(x),
        biased=bias is not None,
        activation=layer.above,
        precision=layer.precision,
        round_x=layer.rounds_inside["round_x"],
        round_y=layer.precision == "tf32" and layer.above != "none",
    )
    return y


def back(
    dz: Float[Tensor, "b o y x"],
    x: Float[Tensor, "b i h w"],
    weight: Float[Tensor, "3 3 i o"],
    layer: Layer,
) -> tuple[Float[Tensor, "b i h w"], Float[Tensor, "programs rows o"]]:
    """The gradient before the activation that made x, and the programs' parts for `total`.

    Args:
        dz: the gradient before this layer's activation, channels together in memory.
        x: this layer's input.
        weight: its weights, contiguous.
        layer: the rest of it.
    """
    b, channels_in, height, width = x.shape
    channels_out, height_out, width_out = dz.shape[1:]
    dx = _channels_together(b, channels_in, height, width, x)
    block = block_of("back", channels_in, channels_out)
    # Four warps that share the sums of 16 x 16 channels would do each of them twice.
    groups = Groups.of(channels_out, 16 if block.apart else 17)
    down, across = triton.cdiv(height, block.rows), triton.cdiv(width, block.columns)
    tiles = b * down * across
    partial = weights(dz, x, layer) if block.apart else _parts(tiles, block, x, channels_out)
    _launch(
        _back,
        tiles if block.apart else len(partial),
        block,
        *(dz, x, weight, dx, partial, height, width, height_out, width_out, *_strides(x)),
        *(tiles, down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_in=max(16, _power_of_two(channels_in)),
        summed=not block.apart,
        padding=layer.padding,
        together=_is_together(x),
        activation=layer.below,
        precision=layer.precision,
        round_dx=layer.precision == "tf32" and layer.below != "none",
        **layer.rounds_inside,
    )
    return dx, partial


def weights(
    dz: Float[Tensor, "b o y x"], x: Float[Tensor, "b i h w"], layer: Layer
) -> Float[Tensor, "programs rows o"]:
    """The programs' parts for `total` alone."""
    b, channels_in, height, width = x.shape
    channels_out, height_out, width_out = dz.shape[1:]
    groups, block = Groups.of(channels_in), block_of("weights", channels_in, channels_out)
    down, across = triton.cdiv(height_out, block.rows), triton.cdiv(width_out, block.columns)
    partial = _parts(b * down * across, block, x, channels_out)
    _launch(
        _weights,
        len(partial),
        block,
        *(dz, x, partial, height, width, height_out, width_out, *_strides(x)),
        *(b * down * across, down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_out=max(16, _power_of_two(channels_out)),
        padding=layer.padding,
        together=_is_together(x),
        precision=layer.precision,
        **layer.rounds_inside,
    )
    return partial


def total(
    partial: Float[Tensor, "programs rows o"], weight: Float[Tensor, "o i 3 3"], biased: bool
) -> tuple[Float[Tensor, "o i 3 3"], Float[Tensor, " o"] | None]:
    """The gradients of a layer's weight, laid out as it is, and bias: the sum of the parts."""
    d_weight = torch.empty_like(weight)
    d_bias = weight.new_empty(len(weight)) if biased else None
    block = block_of("total", weight.shape[1], weight.shape[0])
    _launch(
        _total,
        triton.cdiv(partial[0].numel(), block.columns),
        block,
        *(partial, d_weight, d_weight if d_bias is None else d_bias, len(partial)),
        *d_weight.stride(),
        channels_in=weight.shape[1],
        channels_out=weight.shape[0],
        biased=biased,
    )
    return d_weight, d_bias


def _launch(kernel: Any, programs: int, block: Block, *arguments: Any, **constants: Any) -> None:
    # One stage: the compiler would fetch whole tiles past the first-level cache, nine times each.
    kernel[(programs,)](
        *arguments,
        **constants,
        rows=block.rows,
        columns=block.columns,
        num_warps=block.warps,
        num_stages=1,
        enable_fp_fusion=True,  # Triton 3.9 warns where nobody says
    )


def _channels_together(b: int, channels: int, height: int, width: int, like: Tensor) -> Tensor:
    return like.new_empty(b, height, width, channels).permute(0, 3, 1, 2)


def _is_together(x: Tensor) -> bool:
    return x.is_contiguous(memory_format=torch.channels_last)


def _strides(x: Tensor) -> tuple[int, int, int, int]:
    image, channel, row, column = x.stride()
    return image, row, column, channel


def _parts(tiles: int, block: Block, x: Tensor, channels_out: int) -> Tensor:
    processors = (
        torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 2
    )
    programs = min(tiles, processors * block.programs)
    return x.new_empty(programs, 9 * x.shape[1] + 1, channels_out)
