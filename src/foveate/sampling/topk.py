"""The n most likely cells: biased, repeatable, for inference and for comparison."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.sampling.sampler import Sampler
from foveate.types import Float64, Int64


class TopK(Sampler):
    """Takes the n cells of most attention, weighed by their share of it. Biased.

    Example:
        >>> TopK().draw(torch.tensor([[0.6, 0.1, 0.3]]).log(), n=2)
        Draw(index=tensor([[0, 2]]), weight=tensor([[0.6667, 0.3333]]))
    """

    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.sample`; the generator is not asked."""
        return self.settle(attention, n)

    def settle(
        self, attention: Float64[Tensor, "b k"], n: int
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.settle`."""
        largest = attention.topk(n, dim=-1)
        return largest.indices, largest.values / largest.values.sum(-1, keepdim=True)
