"""Batch norm and ReLU of a training step on a GPU, as Triton kernels: two launches each way.

An image whose channels lie together is a table of pixels by channels. The first launch of each
direction has a number of programs sum over their tiles of it; in the second, every program merges
what they found, in one order, and writes its own tiles: the same numbers every time.

Variances are sound however large the mean is. A program sums deviations from its first pixel; as
that is one of its n numbers, their squares are at most n + 1 times those from the mean, and about
twice as a rule. What the programs found is merged as Chan, Golub and LeVeque do (1983).

Sums go through the tiles from the last to the first, and what is written from the first to the
last: what was read most recently is still in the cache.
"""

from __future__ import annotations

from typing import no_type_check

import triton
import triton.language as tl

SIZES = ["pixels", "programs"]
"""Numbers that a kernel is not compiled anew for."""


@triton.jit
@no_type_check
def _own_channels(channels: tl.constexpr, size: tl.constexpr):
    """The channels of this program, and which of them exist."""
    channel = tl.program_id(1) * size + tl.arange(0, size)
    return channel, channel < channels


@triton.jit
@no_type_check
def _tile(tile, pixels, channels: tl.constexpr, size: tl.constexpr, rows: tl.constexpr):
    """Where a tile of pixels by channels begins, the offsets in it, and which of them exist."""
    channel, exists = _own_channels(channels, size)
    row = tl.arange(0, rows)
    offset = row[:, None] * channels + channel[None, :]
    inside = (row < pixels - tile * rows)[:, None]
    if channels % size:
        inside = inside & exists[None, :]
    return tl.cast(tile, tl.int64) * (rows * channels), offset, inside


@triton.jit
@no_type_check
def _sum_of_rounds(values, rounds: tl.constexpr):
    """The sum of the parts of a tile that lie below each other, which every thread has in hand."""
    rows: tl.constexpr = values.shape[0] // rounds
    return tl.sum(tl.reshape(values, (rounds, rows, values.shape[1])), 0)


@triton.jit
@no_type_check
def _load_parts(partial, programs, channels: tl.constexpr, size: tl.constexpr, parts: tl.constexpr):
    """The two rows of numbers that each program has left."""
    channel, exists = _own_channels(channels, size)
    program = tl.arange(0, parts)
    mask = (program < programs)[:, None] & exists[None, :]
    place = partial + program[:, None] * (2 * channels) + channel[None, :]
    return tl.load(place, mask=mask, other=0.0), tl.load(place + channels, mask=mask, other=0.0)


@triton.jit
@no_type_check
def _store_part(partial, first, second, channels: tl.constexpr, size: tl.constexpr):
    """Leave two rows of numbers as this program's."""
    channel, exists = _own_channels(channels, size)
    place = partial + tl.program_id(0) * (2 * channels) + channel
    tl.store(place, first, mask=exists)
    tl.store(place + channels, second, mask=exists)


@triton.jit
@no_type_check
def _count(program, pixels, programs, rows: tl.constexpr):
    """How many pixels a program sums over; the first has the last tile, which may be cut."""
    tiles = tl.cdiv(pixels, rows)
    whole = tl.cdiv(tiles - program, programs) * rows
    return (whole - tl.where(program == 0, tiles * rows - pixels, 0)).to(tl.float32)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def moments_kernel(
    x,
    partial,
    pixels,
    channels: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
    rounds: tl.constexpr,
):
    """This program's mean of each channel, and its sum of squared deviations from that."""
    program = tl.program_id(0)
    tiles = tl.cdiv(pixels, rows)
    start, offset, inside = _tile(tiles - 1 - program, pixels, channels, size, rows)
    channel, exists = _own_channels(channels, size)
    origin = tl.load(x + start + channel, mask=exists, other=0.0)
    sums = tl.zeros((rows // rounds, size), tl.float32)
    squares = tl.zeros((rows // rounds, size), tl.float32)
    for turn in range(program, tiles, tl.num_programs(0)):
        start, offset, inside = _tile(tiles - 1 - turn, pixels, channels, size, rows)
        values = tl.load(x + start + offset, mask=inside, other=origin[None, :])
        away = values.to(tl.float32) - origin.to(tl.float32)[None, :]
        sums += _sum_of_rounds(away, rounds)
        squares += _sum_of_rounds(away * away, rounds)
    count = _count(program, pixels, tl.num_programs(0), rows)
    total = tl.sum(sums, 0)
    mean = total / count
    squared = tl.maximum(tl.sum(squares, 0) - total * mean, 0.0, tl.PropagateNan.ALL)
    _store_part(partial, origin.to(tl.float32) + mean, squared, channels, size)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def norm_kernel(
    x,
    weight,
    bias,
    partial,
    y,
    moments,
    running_mean,
    running_var,
    batches,
    pixels,
    programs,
    momentum,
    eps,
    channels: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
    rows_summed: tl.constexpr,
    parts: tl.constexpr,
):
    """Tiles of the output; the first program keeps the mean, 1 over the deviation, and the runs."""
    channel, exists = _own_channels(channels, size)
    means, squares = _load_parts(partial, programs, channels, size, parts)
    program = tl.arange(0, parts)
    count = tl.where(program < programs, _count(program, pixels, programs, rows_summed), 0.0)
    origin = tl.load(partial + channel, mask=exists, other=0.0)
    whole = pixels.to(tl.float32)
    mean = origin + tl.sum(count[:, None] * (means - origin[None, :]), 0) / whole
    apart = means - mean[None, :]
    squared = tl.sum(squares + count[:, None] * apart * apart, 0)
    inverse = tl.rsqrt(squared / whole + eps)
    if tl.program_id(0) == 0:
        tl.store(moments + channel, mean, mask=exists)
        tl.store(moments + channels + channel, inverse, mask=exists)
        run = tl.load(running_mean + channel, mask=exists, other=0.0)
        tl.store(running_mean + channel, (1 - momentum) * run + momentum * mean, mask=exists)
        run = tl.load(running_var + channel, mask=exists, other=0.0)
        unbiased = squared / (pixels - 1).to(tl.float32)
        tl.store(running_var + channel, (1 - momentum) * run + momentum * unbiased, mask=exists)
        if tl.program_id(1) == 0:
            tl.store(batches, tl.load(batches) + 1)

    scale = inverse * tl.load(weight + channel, mask=exists, other=0.0)
    shift = tl.load(bias + channel, mask=exists, other=0.0)
    for tile in range(tl.program_id(0), tl.cdiv(pixels, rows), tl.num_programs(0)):
        start, offset, inside = _tile(tile, pixels, channels, size, rows)
        away = tl.load(x + start + offset, mask=inside, other=0.0).to(tl.float32) - mean[None, :]
        z = away * scale[None, :] + shift[None, :]
        tl.store(y + start + offset, tl.where(z <= 0, 0.0, z), mask=inside)


@triton.jit
@no_type_check
def _load_moments(moments, weight, bias, channels: tl.constexpr, size: tl.constexpr):
    """The mean and 1 over the deviation of this program's channels, their scale and their shift."""
    channel, exists = _own_channels(channels, size)
    mean = tl.load(moments + channel, mask=exists, other=0.0)
    inverse = tl.load(moments + channels + channel, mask=exists, other=0.0)
    scale = inverse * tl.load(weight + channel, mask=exists, other=0.0)
    return mean, inverse, scale, tl.load(bias + channel, mask=exists, other=0.0)


@triton.jit
@no_type_check
def _load_gradient(
    dy,
    x,
    mean,
    scale,
    shift,
    tile,
    pixels,
    channels: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
):
    """A tile of the gradient before the ReLU, and of the input's deviations from the mean."""
    start, offset, inside = _tile(tile, pixels, channels, size, rows)
    away = tl.load(x + start + offset, mask=inside, other=0.0).to(tl.float32) - mean[None, :]
    above = tl.load(dy + start + offset, mask=inside, other=0.0).to(tl.float32)
    return tl.where(away * scale[None, :] + shift[None, :] <= 0, 0.0, above), away


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def slopes_kernel(
    dy,
    x,
    weight,
    bias,
    moments,
    partial,
    pixels,
    channels: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
    rounds: tl.constexpr,
):
    """This program's part of the gradients of the bias and the weight."""
    mean, inverse, scale, shift = _load_moments(moments, weight, bias, channels, size)
    sums = tl.zeros((rows // rounds, size), tl.float32)
    products = tl.zeros((rows // rounds, size), tl.float32)
    tiles = tl.cdiv(pixels, rows)
    for turn in range(tl.program_id(0), tiles, tl.num_programs(0)):
        # fmt: off
        dz, away = _load_gradient(
            dy, x, mean, scale, shift, tiles - 1 - turn, pixels, channels, size, rows
        )
        # fmt: on
        sums += _sum_of_rounds(dz, rounds)
        products += _sum_of_rounds(dz * away, rounds)
    _store_part(partial, tl.sum(sums, 0), tl.sum(products, 0) * inverse, channels, size)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def norm_back_kernel(
    dy,
    x,
    weight,
    bias,
    moments,
    partial,
    dx,
    d_weight,
    d_bias,
    pixels,
    programs,
    channels: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
    parts: tl.constexpr,
):
    """Tiles of the input's gradient; the first program keeps those of the weight and the bias."""
    channel, exists = _own_channels(channels, size)
    sums, products = _load_parts(partial, programs, channels, size, parts)
    of_bias, of_weight = tl.sum(sums, 0), tl.sum(products, 0)
    if tl.program_id(0) == 0:
        tl.store(d_bias + channel, of_bias, mask=exists)
        tl.store(d_weight + channel, of_weight, mask=exists)

    mean, inverse, scale, shift = _load_moments(moments, weight, bias, channels, size)
    whole = pixels.to(tl.float32)
    level = (of_bias / whole)[None, :]
    slope = (of_weight / whole * inverse)[None, :]
    for tile in range(tl.program_id(0), tl.cdiv(pixels, rows), tl.num_programs(0)):
        dz, away = _load_gradient(dy, x, mean, scale, shift, tile, pixels, channels, size, rows)
        start, offset, inside = _tile(tile, pixels, channels, size, rows)
        gradient = (dz - level - away * slope) * scale[None, :]
        tl.store(dx + start + offset, gradient, mask=inside)
