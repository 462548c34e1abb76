"""The only source of random numbers in foveate: everything comes from the generator passed in.

Numbers are drawn in float64. With 10^7 cells the smallest of as many float32 exponentials are
mostly ties, which biases the draw; with 53 bits they are not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.types import Float64


class Share(torch.Generator):
    """Gives the images of one process the numbers that they would have in the combined batch.

    All processes seed theirs alike, draw the numbers of all images, and each takes its own rows.
    So how many processes share a batch does not change what is drawn.

    Args:
        device: where numbers are drawn.
        rank: which of the processes this is.
        processes: how many there are, each with as many images.

    Example:
        >>> like = torch.empty(0)
        >>> whole = uniform((4, 1), like, torch.Generator().manual_seed(0))
        >>> second = uniform((2, 1), like, Share("cpu", rank=1, processes=2).manual_seed(0))
        >>> torch.equal(second, whole[2:])
        True
    """

    rank: int
    processes: int

    def __new__(cls, device: torch.device | str, rank: int, processes: int) -> Share:
        """A generator is made here, not in `__init__`."""
        share = super().__new__(cls, device)  # type: ignore[call-arg]  # torch says so of __init__
        share.rank, share.processes = rank, processes
        return share


def uniform(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Uniform numbers in [0, 1) on the device of `like`, a row for each image."""
    device = like.device if generator is None else generator.device
    rows = slice(None)
    if isinstance(generator, Share):
        first = generator.rank * shape[0]
        rows = slice(first, first + shape[0])
        shape = (generator.processes * shape[0], *shape[1:])
    numbers = torch.rand(shape, dtype=torch.float64, device=device, generator=generator)
    return numbers[rows].to(like.device)


def exponential(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Exponential numbers of mean 1, all above 0, on the device of `like`."""
    u = uniform(shape, like, generator)
    # 1 - u lies in (0, 1], where log is finite; u == 0 would give an exponential of exactly 0.
    return -torch.log1p(-u).clamp(max=-torch.finfo(torch.float64).tiny)
