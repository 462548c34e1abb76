"""A 3x3 convolution to one channel as nine products of each pixel, and their sum where they fall.

The libraries that torch calls on a CPU take as long for one channel as for sixteen.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveate.types import Float


def convolve_to_one(
    x: Float[Tensor, "b c h w"],
    weight: Float[Tensor, "1 c 3 3"],
    bias: Float[Tensor, " 1"] | None,
    padding: int,
) -> Float[Tensor, "b 1 y x"]:
    """What `torch.nn.functional.conv2d` gives.

    Args:
        x: the input.
        weight: of the convolution.
        bias: of the convolution.
        padding: 0 or 1.

    Example:
        >>> x, weight = torch.rand(2, 4, 9, 8), torch.rand(1, 4, 3, 3)
        >>> torch.allclose(convolve_to_one(x, weight, None, 1), F.conv2d(x, weight, padding=1))
        True
    """
    result: Tensor = _ToOne.apply(x, weight, padding)  # type: ignore[no-untyped-call]
    return result if bias is None else result + bias


class _ToOne(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, padding: int) -> Tensor:
        context.save_for_backward(x, weight)
        context.padding = padding
        pixels = x.permute(0, 2, 3, 1).flatten(1, 2)
        products = (weight[0].flatten(1).T @ pixels.mT).view(len(x), 9, *x.shape[2:])
        if padding:
            products = F.pad(products, (padding,) * 4)
        height, width = products.shape[2] - 2, products.shape[3] - 2
        total = products[:, :1, :height, :width].contiguous()
        for tap in range(1, 9):
            row, column = divmod(tap, 3)
            total += products[:, tap : tap + 1, row : row + height, column : column + width]
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = context.saved_tensors
        # What each tap of each pixel went into: the gradient, seen from the other side.
        around = F.pad(gradient, (2 - context.padding,) * 4)
        taps = F.unfold(around, 3)  # (b, 9, h * w)
        to_x = to_weight = None
        if context.needs_input_grad[0]:
            to_x = taps.mT @ weight[0].flatten(1).flip(1).T.contiguous()
            to_x = to_x.view(len(x), *x.shape[2:], -1).permute(0, 3, 1, 2)
        if context.needs_input_grad[1]:
            pixels = x.permute(0, 2, 3, 1).flatten(1, 2)
            to_weight = (taps @ pixels).sum(0).flip(0).T.reshape(weight.shape)
        return to_x, to_weight, None
