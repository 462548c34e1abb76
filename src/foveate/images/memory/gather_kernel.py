"""Rectangles of uint8 images to what a network takes, in one pass on the GPU.

The kernel reads only the pixels of the rectangles, on the device or in pinned host memory, and
writes them twice: as they are, and as colours from 0 to 1 in the type and layout that the network
wants. Pixels are read in the order in which the image has them, and a variation decides where each
is written. `Lens`, `gather_patches` and a division are the reference, to the last bit.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from foveate.images.memory.form import Form
from foveate.images.memory.variation import Lens
from foveate.types import Float, Int64, Size, UInt8

_BLOCK = 512


@triton.jit
@no_type_check
def _rounded(shift, extent, unit):
    """Shift * extent / unit, rounded to the nearest, halves to even, as `round_ratio` does."""
    numerator = tl.abs(shift) * extent
    below = numerator // unit
    twice_rest = 2 * (numerator - below * unit)
    up = (twice_rest > unit) | ((twice_rest == unit) & (below % 2 == 1))
    rounded = below + up.to(tl.int64)
    return tl.where(shift < 0, -rounded, rounded)


@triton.jit
@no_type_check
def _gather(
    images,
    index,
    address,
    extent,
    corners,
    raw,
    out,
    shift,
    gain,
    bias,
    mirror,
    turn,
    n,
    blocks,
    height,
    width,
    rows,
    columns,
    stride_image,
    stride_channel,
    stride_y,
    stride_x,
    out_patch,
    out_channel,
    out_y,
    out_x,
    gain_image,
    gain_channel,
    bias_image,
    bias_channel,
    unit_y,
    unit_x,
    channels: tl.constexpr,
    block: tl.constexpr,
):
    """One block of pixels of one rectangle, all its channels."""
    patch = (tl.program_id(0) // blocks).to(tl.int64)
    batch = patch // n
    pixel = (tl.program_id(0) % blocks) * block + tl.arange(0, block)
    there = pixel < rows * columns
    row, column = pixel // columns, pixel % columns
    to_row, to_column = row, column
    number = batch
    if index is not None:
        number = tl.load(index + batch)
    if extent is not None:
        height = tl.load(extent + 2 * number)
        width = tl.load(extent + 2 * number + 1)
    y = tl.zeros((), dtype=tl.int64)
    x = tl.zeros((), dtype=tl.int64)
    if corners is not None:
        y = tl.load(corners + 2 * patch)
        x = tl.load(corners + 2 * patch + 1)
    if shift is not None:
        y -= _rounded(tl.load(shift + 2 * batch), height, unit_y)
        x -= _rounded(tl.load(shift + 2 * batch + 1), width, unit_x)
        down, across = tl.load(mirror + 2 * batch) != 0, tl.load(mirror + 2 * batch + 1) != 0
        y = tl.where(down, height - rows - y, y)
        x = tl.where(across, width - columns - x, x)
        if turn is not None:
            turned = tl.load(turn + batch) != 0
            y, x = tl.where(turned, x, y), tl.where(turned, y, x)
            to_row, to_column = tl.where(turned, column, row), tl.where(turned, row, column)
        to_row = tl.where(down, rows - 1 - to_row, to_row)
        to_column = tl.where(across, columns - 1 - to_column, to_column)
    y += row
    x += column
    inside = there & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    if address is not None:
        source = tl.load(address + batch).to(tl.pointer_type(tl.uint8))
    else:
        source = images + number * stride_image
    source += y * stride_y + x * stride_x
    target = out + patch * out_patch + to_row * out_y + to_column * out_x
    for channel in tl.static_range(channels):
        value = tl.load(source, mask=inside, other=0)
        if raw is not None:
            plane = patch * channels + channel
            tl.store(raw + plane * (rows * columns) + pixel, value, mask=there)
        colour = tl.div_rn(value.to(tl.float32), 255.0)
        if gain is not None:
            factor = tl.load(gain + batch * gain_image + channel * gain_channel)
            added = tl.load(bias + batch * bias_image + channel * bias_channel)
            colour = tl.minimum(tl.maximum(factor * colour + added, 0.0), 1.0)
        tl.store(target, colour.to(out.dtype.element_ty), mask=there)
        source += stride_channel
        target += out_channel


def gather_inputs(
    images: UInt8[Tensor, "N c H W"],
    yx_level0: Int64[Tensor, "b n 2"] | None,
    size: Size,
    form: Form | None = None,
    lens: Lens | None = None,
    index: Int64[Tensor, " b"] | None = None,
    address: Int64[Tensor, " b"] | None = None,
    extent: Int64[Tensor, "N 2"] | None = None,
) -> tuple[UInt8[Tensor, "..."], Float[Tensor, "m c p q"]]:
    """Rectangles as they are, and as a network takes them; both 0 outside an image.

    Args:
        images: the images, on the network's device or in pinned host memory.
        yx_level0: their corners; None for one at (0, 0) of each image.
        size: height and width of the rectangles.
        form: what the network takes; float32 on the device of the corners by default.
        lens: the variation through which the images are seen.
        index: which image each row of corners belongs to; all of them in turn by default.
        address: where the first pixel of each row's image lies in memory, to read others than
            `images` that are like them.
        extent: (height, width) of each image, if they are smaller than the tensor.

    Returns:
        The rectangles, of which there are none without corners or with a lens, and the inputs.
    """
    if form is None:
        assert yx_level0 is not None
        form = Form(yx_level0.device)
    rows_of = next((given for given in (address, index, yx_level0) if given is not None), images)
    b, n = len(rows_of), 1 if yx_level0 is None else yx_level0.shape[1]
    _, channels, height, width = images.shape
    like: dict[str, Any] = {"device": form.device}
    out = torch.empty(
        (b * n, channels, *size), dtype=form.dtype, memory_format=form.memory_format, **like
    )
    raw = torch.empty(0, dtype=torch.uint8, **like)
    if yx_level0 is not None and lens is None:
        raw = raw.new_empty(b, n, channels, *size)
    shift = gain = bias = mirror = turn = None
    unit: Size = (1, 1)
    strides: tuple[int, ...] = (0, 0, 0, 0)
    if lens is not None:
        moved = [value.to(form.device) for value in lens.variation.tensors]
        shift, gain, bias, mirror, turn = (value.contiguous() for value in moved)
        gain, bias = gain.expand(b, channels), bias.expand(b, channels)
        mirror, turn = mirror.view(torch.uint8), turn.view(torch.uint8)
        unit, strides = lens.overview_size, (*gain.stride(), *bias.stride())
        turn = turn if lens.turns else None
    blocks = triton.cdiv(size[0] * size[1], _BLOCK)
    on_gpu = form.device.type == "cuda"
    with torch.cuda.device(form.device) if on_gpu else nullcontext():
        _gather[(b * n * blocks,)](
            images,
            index,
            address,
            None if extent is None else extent.to(form.device).contiguous(),
            None if yx_level0 is None else yx_level0.contiguous(),
            raw if raw.numel() else None,
            out,
            shift,
            gain,
            bias,
            mirror,
            turn,
            n,
            blocks,
            height,
            width,
            *size,
            *images.stride(),
            *out.stride(),
            *strides,
            *unit,
            channels=channels,
            block=_BLOCK,
            enable_fp_fusion=False,  # a product and a sum, each rounded, as PyTorch has them
        )
    return raw, out
