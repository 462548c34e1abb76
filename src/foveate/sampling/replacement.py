"""Independent draws: the plain Monte-Carlo estimate that every other sampler is measured by."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.sampling.chance import uniform
from foveate.sampling.sampler import Sampler
from foveate.sampling.strata import locate
from foveate.types import Float64, Int64


class Replacement(Sampler):
    """Draws n independent cells, each of weight 1/n; the only sampler with n above the cells.

    Example:
        >>> log_attention = torch.tensor([[0.5, 0.5]]).log()
        >>> draw = Replacement().draw(log_attention, n=4)
        >>> draw.weight
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    replaces = True

    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.sample`."""
        return _at(attention, uniform((len(attention), n), attention, generator))

    def settle(
        self, attention: Float64[Tensor, "b k"], n: int
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.settle`; a cell of large attention is drawn several times."""
        middle = (torch.arange(n, device=attention.device, dtype=attention.dtype) + 0.5) / n
        return _at(attention, middle.expand(len(attention), n))


def _at(
    attention: Float64[Tensor, "b k"], fraction: Float64[Tensor, "b n"]
) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
    index = locate(attention, fraction)
    # The total is 1, or NaN if the attention is: the weights must not hide it.
    return index, (attention.sum(-1, keepdim=True) / fraction.shape[-1]).expand(index.shape)
