"""The only source of random numbers in foveate: everything comes from the generator passed in.

Numbers are drawn in float64. With 10^7 cells the smallest of as many float32 exponentials are
mostly ties, which biases the draw; with 53 bits they are not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.types import Float64


def uniform(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Uniform numbers in [0, 1) on the device of `like`."""
    device = like.device if generator is None else generator.device
    return torch.rand(shape, dtype=torch.float64, device=device, generator=generator).to(
        like.device
    )


def exponential(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Exponential numbers of mean 1, all above 0, on the device of `like`."""
    u = uniform(shape, like, generator)
    # 1 - u lies in (0, 1], where log is finite; u == 0 would give an exponential of exactly 0.
    return -torch.log1p(-u).clamp(max=-torch.finfo(torch.float64).tiny)
