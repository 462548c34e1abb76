"""A layer of batch norm and ReLU in training, forward and back, by launches of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from foveate.models.convolve_blocks import power_of_two
from foveate.models.norm_kernel import (
    moments_kernel,
    norm_back_kernel,
    norm_kernel,
    slopes_kernel,
)
from foveate.types import Float


@dataclass(frozen=True)
class Block:
    """How a kernel is cut up.

    Attributes:
        tile: numbers that a program has in hand at a time, a power of two.
        warps: warps of 32 threads in a program.
        programs: the most there are, a power of two; the same on every GPU, as sums are then.
    """

    tile: int
    warps: int
    programs: int


SUMS = Block(2**14, warps=16, programs=128)
"""One for each multiprocessor: all that they find is read by every program that writes."""
WRITES = Block(2**13, warps=8, programs=256)
ROUNDS = 4
"""Parts of a tile of sums, which lie below each other and are added by each thread by itself."""
CHANNELS = 64
"""The most channels of a program: in half precision, a line of the cache."""


class Running(NamedTuple):
    """What a layer remembers of the batches that it has seen; brought up to date in place."""

    mean: Tensor
    var: Tensor
    batches: Tensor
    momentum: float


def forward(
    x: Float[Tensor, "b c h w"],
    weight: Float[Tensor, " c"],
    bias: Float[Tensor, " c"],
    running: Running,
    eps: float,
) -> tuple[Float[Tensor, "b c h w"], Float[Tensor, "2 c"]]:
    """The output in the input's type, and each channel's mean and 1 over its deviation.

    Args:
        x: the input, channels together in memory.
        weight: the scale of each channel.
        bias: what is added then.
        running: is told of this batch.
        eps: added to the variance.
    """
    sums, writes = _Cut.of(x, SUMS), _Cut.of(x, WRITES)
    partial, y = weight.new_empty(sums.programs, 2, x.shape[1]), _empty_like(x)
    moments = weight.new_empty(2, x.shape[1])
    _launch(moments_kernel, sums, x, partial, sums.pixels, rounds=ROUNDS)
    _launch(
        norm_kernel,
        writes,
        *(x, weight, bias, partial, y, moments, running.mean, running.var, running.batches),
        *(sums.pixels, sums.programs, running.momentum, eps),
        rows_summed=sums.rows,
        parts=sums.most,
    )
    return y, moments


def back(
    dy: Float[Tensor, "b c h w"],
    x: Float[Tensor, "b c h w"],
    weight: Float[Tensor, " c"],
    bias: Float[Tensor, " c"],
    moments: Float[Tensor, "2 c"],
) -> tuple[Float[Tensor, "b c h w"], Float[Tensor, " c"], Float[Tensor, " c"]]:
    """The gradients of the input, the weight and the bias.

    Args:
        dy: the gradient of the output, channels together in memory.
        x: the input, channels together in memory.
        weight: as it was forward.
        bias: as it was forward.
        moments: what came out forward.
    """
    sums, writes = _Cut.of(x, SUMS), _Cut.of(x, WRITES)
    partial, dx = weight.new_empty(sums.programs, 2, x.shape[1]), _empty_like(x)
    d_weight, d_bias = torch.empty_like(weight), torch.empty_like(bias)
    inputs = dy, x, weight, bias, moments, partial
    _launch(slopes_kernel, sums, *inputs, sums.pixels, rounds=ROUNDS)
    _launch(
        norm_back_kernel,
        writes,
        *(*inputs, dx, d_weight, d_bias, sums.pixels, sums.programs),
        parts=sums.most,
    )
    return dx, d_weight, d_bias


@dataclass(frozen=True)
class _Cut:
    """How a table of pixels by channels is cut into tiles of `rows` by `size`.

    Attributes:
        most: the most programs there may be for the same channels, a power of two.
    """

    pixels: int
    channels: int
    size: int
    rows: int
    most: int
    warps: int

    @classmethod
    def of(cls, x: Tensor, block: Block) -> _Cut:
        channels = x.shape[1]
        size = min(CHANNELS, power_of_two(channels))
        # Few channels are not read many at a time, and registers would run out.
        rows = block.tile // max(8, size)
        most = max(1, block.programs // power_of_two(triton.cdiv(channels, size)))
        return cls(x.numel() // channels, channels, size, rows, most, block.warps)

    @property
    def programs(self) -> int:
        tiles: int = triton.cdiv(self.pixels, self.rows)
        return min(self.most, tiles)


def _empty_like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last)


def _launch(kernel: Any, cut: _Cut, *arguments: Any, **constants: Any) -> None:
    kernel[(cut.programs, triton.cdiv(cut.channels, cut.size))](
        *arguments,
        **constants,
        channels=cut.channels,
        size=cut.size,
        rows=cut.rows,
        num_warps=cut.warps,
        num_stages=1,
        enable_fp_fusion=True,  # Triton 3.9 warns where nobody says
    )
