"""From pixels as they were read to what a network takes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foveate.errors import InputError
from foveate.types import Float, Num, Size


def to_network(pixels: Num[Tensor, "..."], network: nn.Module) -> Float[Tensor, "..."]:
    """Pixels as floats on the device and in the precision of a network; uint8 becomes 0 to 1."""
    weight = next(parameter for parameter in network.parameters() if parameter.is_floating_point())
    floats = pixels.to(weight.device, non_blocking=True).to(weight.dtype)
    return floats / 255 if pixels.dtype == torch.uint8 else floats


def check_size(name: str, size: Size) -> Size:
    """Raise unless a size is two positive whole numbers."""
    if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
        raise InputError(f"{name} must be (height, width), both at least 1, but is {size}")
    return (size[0], size[1])
