"""Systematic sampling with probability proportional to size (πps), the default.

Inclusion probabilities π_k = min(1, c a_k) with sum n; one uniform number u; the cells where the
cumulative sum of π first passes u, u + 1, ..., u + n - 1. The weights a_k / π_k (Horvitz & Thompson
1952) sum to 1, so constant features come back exactly. Cells are taken along a curve that keeps
neighbours together, so that strata are compact and draws spread over the image.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.sampling.chance import uniform
from foveate.sampling.sampler import Sampler
from foveate.sampling.strata import spread
from foveate.types import Float64, Int64


class Systematic(Sampler):
    """Draws n distinct cells, one from each stratum of equal attention: the least variance.

    Example:
        >>> log_attention = torch.tensor([[0.7, 0.1, 0.1, 0.1]]).log()
        >>> draw = Systematic().draw(log_attention, n=2, generator=torch.Generator().manual_seed(0))
        >>> draw.index, draw.weight  # cell 0 is certain, so it counts for its own 0.7
        (tensor([[0, 3]]), tensor([[0.7000, 0.3000]]))
    """

    stratified = True

    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.sample`."""
        return spread(attention, n, uniform((len(attention), 1), attention, generator))
