"""In what form a network takes its inputs."""

from __future__ import annotations

import torch
from torch import nn

from foveate.errors import InputError
from foveate.images import Form
from foveate.types import Size


def form_of(network: nn.Module, mixed: bool = False) -> Form:
    """On the device, in the precision and in the layout of a network's weights.

    Args:
        network: the network.
        mixed: whether autocast, where it is on, decides the precision, as it would decide that of
            the network's first layer.
    """
    weights = [weight for weight in network.parameters() if weight.is_floating_point()]
    device, dtype = weights[0].device, weights[0].dtype
    if mixed and dtype == torch.float32 and torch.is_autocast_enabled(device.type):
        dtype = torch.get_autocast_dtype(device.type)
    kernels = (weight for weight in weights if weight.ndim == 4 and not weight.is_contiguous())
    channels_last = any(
        kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels
    )
    return Form(device, dtype, channels_last)


def check_size(name: str, size: Size) -> Size:
    """Raise unless a size is two positive whole numbers."""
    if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
        raise InputError(f"{name} must be (height, width), both at least 1, but is {size}")
    return (size[0], size[1])
