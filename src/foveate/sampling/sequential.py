"""Sampling without replacement as the paper does it (Katharopoulos & Fleuret 2019, section 3.3).

Cell m, drawn after the others before it, gives the unbiased estimate

    sum_{k<m} a_k f_k + (1 - sum_{k<m} a_k) f_m;

the mean over m = 1..n weighs cell k by ((1 - sum_{j<k} a_j) + (n - k) a_k) / n.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.sampling.gumbel import draw_in_order
from foveate.sampling.sampler import Sampler
from foveate.sampling.strata import mass_from, mass_outside
from foveate.types import Float64, Int64


class Sequential(Sampler):
    """Draws n distinct cells in order, and weighs them by their place in it: the paper's sampler.

    Example:
        >>> log_attention = torch.tensor([[0.5, 0.5, 0.0]]).log()
        >>> Sequential().draw(log_attention, n=2).weight  # both cells seen: the order is no matter
        tensor([[0.7500, 0.2500]])
    """

    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.sample`."""
        index = draw_in_order(attention, n, generator)
        return index, sequential_weight(attention, index)


def sequential_weight(
    attention: Float64[Tensor, "b k"], index: Int64[Tensor, "b n"]
) -> Float64[Tensor, "b n"]:
    """Weigh cells that were drawn in this order."""
    n = index.shape[-1]
    drawn = attention.gather(-1, index)
    remaining = mass_outside(attention, index) + mass_from(drawn)
    later = torch.arange(n - 1, -1, -1, device=attention.device)
    return (remaining + later * drawn) / n
