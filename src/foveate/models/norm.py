"""Batch norm and the ReLU after it as one layer, through kernels of our own where they fit.

In torch a training step launches some ten kernels for the two, and reads what it has just written;
here it is two launches forward and two back (`norm_kernel`), and only the input is kept between.
Everywhere else the layer is nn.BatchNorm2d and a ReLU in place, which the kernels are tested
against.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from foveate.kernels import has_tf32, kernels_on
from foveate.types import Float

_READ = (torch.bfloat16, torch.float16, torch.float32)


class NormReLU(nn.BatchNorm2d):
    """Batch norm, then ReLU; its parameters, buffers and options are those of nn.BatchNorm2d.

    What looks for nn.BatchNorm2d to replace it, as nn.SyncBatchNorm does, must put a ReLU after it.

    Example:
        >>> layer, x = NormReLU(3), torch.randn(2, 3, 4, 4)
        >>> torch.equal(layer(x), nn.BatchNorm2d(3)(x).relu())
        True
    """

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """What is normalised, 0 where it is negative."""
        if not fits(x, self):
            return F.relu(super().forward(x), inplace=True)
        buffers = self.running_mean, self.running_var, self.num_batches_tracked
        with torch.cuda.device_of(x):
            result: Tensor = _NormReLU.apply(  # type: ignore[no-untyped-call]
                x, self.weight, self.bias, *buffers, float(self.momentum or 0), float(self.eps)
            )
        return result


def fits(x: Tensor, norm: nn.BatchNorm2d) -> bool:
    """Whether the kernels are made for a layer and its input: in training, channels together."""
    if not (kernels_on(x.device) and has_tf32(x.device)):
        return False
    if not norm.training or norm.momentum is None:
        return False
    if not (x.dim() == 4 and x.dtype in _READ and x.shape[1] == norm.num_features):
        return False
    # Pixels are counted in 32 bits. Of a single one there is no variance: torch says so.
    if not (x.shape[1] > 0 and 1 < x.numel() // x.shape[1] < 2**30):
        return False
    state = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    if any(one is None or one.dtype != torch.float32 for one in state):
        return False
    if any(one.device != x.device or not one.is_contiguous() for one in state if one is not None):
        return False
    counter = norm.num_batches_tracked
    if counter is None or counter.device != x.device or counter.dtype != torch.int64:
        return False
    return x.is_contiguous(memory_format=torch.channels_last)


class _NormReLU(torch.autograd.Function):
    """Keeps the input alone: where the ReLU lets a gradient through is found again from it."""

    @staticmethod
    def forward(
        context: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        batches: Tensor,
        momentum: float,
        eps: float,
    ) -> Tensor:
        from foveate.models import norm_layer_kernel

        running = norm_layer_kernel.Running(running_mean, running_var, batches, momentum)
        y, moments = norm_layer_kernel.forward(x, weight, bias, running, eps)
        context.save_for_backward(x, weight, bias, moments)
        return y

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> Any:
        from foveate.models import norm_layer_kernel

        gradient = gradient.contiguous(memory_format=torch.channels_last)
        found = norm_layer_kernel.back(gradient, *context.saved_tensors)
        return *found, None, None, None, None, None
