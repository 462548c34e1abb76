"""A layer of a chain of convolutions, forward and back, by launches of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from foveate.models.convolve_back_kernel import back_kernel, total_kernel, weights_kernel
from foveate.models.convolve_blocks import Block, Groups, block_of, power_of_two
from foveate.models.convolve_kernel import forward_kernel
from foveate.types import Float


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

    # TF32 has 10 bits after the point, as float16 has: what passes between two layers is rounded
    # where it is written, once and not nine times, and products take half the instructions.

    @property
    def between(self) -> torch.dtype:
        """What holds its output."""
        narrow = self.precision == "tf32" and self.above != "none"
        return torch.float16 if narrow else torch.float32

    @property
    def rounds_inside(self) -> dict[str, bool]:
        """Whether an input and a gradient are rounded when they are read."""
        tf32 = self.precision == "tf32"
        return {"round_x": tf32 and self.below == "none", "round_dz": tf32 and self.above == "none"}

    def lifts(self, largest: Tensor | None) -> bool:
        """Whether it scales its gradient: the last layer gets it as it is."""
        return largest is not None and self.above == "none"


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
    y = _channels_together(b, channels_out, height_out, width_out, x, layer.between)
    groups, block = Groups.of(channels_in), block_of("forward", channels_in, channels_out)
    down, across = triton.cdiv(height_out, block.rows), triton.cdiv(width_out, block.columns)
    _launch(
        forward_kernel,
        b * down * across,
        block,
        *(x, weight, weight if bias is None else bias, y),
        *(height, width, height_out, width_out, *_strides(x), down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_out=max(16, power_of_two(channels_out)),
        padding=layer.padding,
        together=_is_together(x),
        biased=bias is not None,
        activation=layer.above,
        precision=layer.precision,
        round_x=layer.rounds_inside["round_x"],
    )
    return y


def back(
    dz: Float[Tensor, "b o y x"],
    x: Float[Tensor, "b i h w"],
    weight: Float[Tensor, "3 3 i o"],
    layer: Layer,
    largest: Float[Tensor, ""] | None = None,
) -> tuple[Float[Tensor, "b i h w"], Float[Tensor, "programs rows o"]]:
    """The gradient before the activation that made x, and the programs' parts for `total`.

    The gradient is written over x, but for the first layer, whose input belongs to others.

    Args:
        dz: the gradient before this layer's activation, channels together in memory.
        x: this layer's input.
        weight: its weights, contiguous.
        layer: the rest of it.
        largest: the largest gradient of the chain's output, where gradients between layers are
            scaled by it.
    """
    b, channels_in, height, width = x.shape
    channels_out, height_out, width_out = dz.shape[1:]
    inner = layer.below != "none"
    dx = x if inner else _channels_together(b, channels_in, height, width, x, torch.float32)
    block = block_of("back", channels_in, channels_out)
    # Four warps that share the sums of 16 x 16 channels would do each of them twice.
    groups = Groups.of(channels_out, 16 if block.apart else 17)
    down, across = triton.cdiv(height, block.rows), triton.cdiv(width, block.columns)
    tiles = b * down * across
    if block.apart:  # x is still there
        partial = weights(dz, x, layer, largest)
    else:
        partial = _parts(tiles, block, dz, channels_in)
    _launch(
        back_kernel,
        tiles if block.apart else len(partial),
        block,
        *(dz, x, weight, dx, partial, partial if largest is None else largest),
        *(height, width, height_out, width_out, *_strides(x), tiles, down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_in=max(16, power_of_two(channels_in)),
        summed=not block.apart,
        padding=layer.padding,
        together=_is_together(x),
        activation=layer.below,
        precision=layer.precision,
        scaled=largest is not None,
        lifted=layer.lifts(largest),
        **layer.rounds_inside,
    )
    return dx, partial


def weights(
    dz: Float[Tensor, "b o y x"],
    x: Float[Tensor, "b i h w"],
    layer: Layer,
    largest: Float[Tensor, ""] | None = None,
) -> Float[Tensor, "programs rows o"]:
    """The programs' parts for `total` alone."""
    b, channels_in, height, width = x.shape
    channels_out, height_out, width_out = dz.shape[1:]
    groups, block = Groups.of(channels_in), block_of("weights", channels_in, channels_out)
    down, across = triton.cdiv(height_out, block.rows), triton.cdiv(width_out, block.columns)
    partial = _parts(b * down * across, block, dz, channels_in)
    _launch(
        weights_kernel,
        len(partial),
        block,
        *(dz, x, partial, partial if largest is None else largest),
        *(height, width, height_out, width_out, *_strides(x), b * down * across, down, across),
        channels_in=channels_in,
        channels_out=channels_out,
        taps=groups.taps,
        size=groups.columns,
        size_out=max(16, power_of_two(channels_out)),
        padding=layer.padding,
        together=_is_together(x),
        precision=layer.precision,
        lifted=layer.lifts(largest),
        **layer.rounds_inside,
    )
    return partial


def total(
    partial: Float[Tensor, "programs rows o"],
    weight: Float[Tensor, "o i 3 3"],
    biased: bool,
    largest: Float[Tensor, ""] | None = None,
) -> tuple[Float[Tensor, "o i 3 3"], Float[Tensor, " o"] | None]:
    """The gradients of a layer's weight, laid out as it is, and bias: the sum of the parts."""
    d_weight = torch.empty_like(weight)
    d_bias = weight.new_empty(len(weight)) if biased else None
    block = block_of("total", weight.shape[1], weight.shape[0])
    _launch(
        total_kernel,
        triton.cdiv(partial[0].numel(), block.columns),
        block,
        *(partial, d_weight, d_weight if d_bias is None else d_bias),
        *(partial if largest is None else largest, len(partial), *d_weight.stride()),
        channels_in=weight.shape[1],
        channels_out=weight.shape[0],
        biased=biased,
        scaled=largest is not None,
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


def _channels_together(
    b: int, channels: int, height: int, width: int, like: Tensor, dtype: torch.dtype
) -> Tensor:
    return like.new_empty(b, height, width, channels, dtype=dtype).permute(0, 3, 1, 2)


def _is_together(x: Tensor) -> bool:
    return x.is_contiguous(memory_format=torch.channels_last)


def _strides(x: Tensor) -> tuple[int, int, int, int]:
    image, channel, row, column = x.stride()
    return image, row, column, channel


def _parts(tiles: int, block: Block, dz: Tensor, channels_in: int) -> Tensor:
    processors = (
        torch.cuda.get_device_properties(dz.device).multi_processor_count if dz.is_cuda else 2
    )
    programs = min(tiles, processors * block.programs)
    shape = programs, 9 * channels_in + 1, dz.shape[1]
    return dz.new_empty(shape, dtype=torch.float32)
