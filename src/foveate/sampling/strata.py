"""Inverting the cumulative attention: the arithmetic that stratified draws share."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.kernels import kernels_on
from foveate.types import Float64, Int64

MOST = 64
"""The most cells of an image that a kernel draws."""

_SLACK = 1e-6
"""A cell within this of inclusion probability 1 is drawn for certain.

Any valid inclusion probabilities give an unbiased estimate, so this costs nothing; it keeps every
other cell narrower than a stratum by far more than cumulative sums can round, so that no cell is
ever drawn twice.
"""


def mass_outside(
    attention: Float64[Tensor, "b k"], index: Int64[Tensor, "b n"]
) -> Float64[Tensor, "b 1"]:
    """The attention on all cells but those in `index`, without the cancellation of 1 - sum."""
    return attention.scatter(-1, index, 0.0).sum(-1, keepdim=True)


def mass_from(values: Float64[Tensor, "b n"]) -> Float64[Tensor, "b n"]:
    """The sum of each entry and all that follow it."""
    return values.flip(-1).cumsum(-1).flip(-1)


def locate(
    attention: Float64[Tensor, "b k"], fraction: Float64[Tensor, "b n"]
) -> Int64[Tensor, "b n"]:
    """The cell in which the cumulative attention passes each fraction of its total.

    Never a cell of attention 0, unless all are (on a GPU, up to the rounding of a parallel sum).
    """
    cumulative = attention.cumsum(-1)
    total = cumulative[:, -1:]
    # Just below the total: the first cell to reach it is one that adds to it.
    threshold = torch.minimum(fraction * total, total * (1 - torch.finfo(total.dtype).eps))
    index = torch.searchsorted(cumulative, threshold, right=True)
    return index.clamp(max=attention.shape[-1] - 1)


def spread(
    attention: Float64[Tensor, "b k"], n: int, u: Float64[Tensor, "b 1"]
) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
    """Draw n distinct cells with inclusion probabilities as near to n * a as they can be.

    The m largest cells, those with n a_k too near 1, are drawn for certain; the cumulative sum of
    the others, of mass T, is cut into n - m equal strata, and the cell at fraction u of each is
    drawn. So π_k = 1 or (n - m) a_k / T, and the weight a_k / π_k is a_k or T / (n - m).

    Args:
        attention: probabilities.
        n: how many cells, at most k.
        u: where in each stratum to draw, in [0, 1).

    Returns:
        The cells, in the order in which they came, and their weights.
    """
    if n <= MOST and kernels_on(attention.device):
        from foveate.sampling.spread_kernel import spread_on_gpu

        return spread_on_gpu(attention, n, u, _SLACK)
    return spread_plainly(attention, n, u)


def spread_plainly(
    attention: Float64[Tensor, "b k"], n: int, u: Float64[Tensor, "b 1"]
) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
    """What `spread` does, by PyTorch."""
    largest = attention.topk(n, dim=-1)
    slot = torch.arange(n, device=attention.device)
    strata = n - slot
    # left[m]: the mass left to share when the m largest are certain.
    left = mass_outside(attention, largest.indices) + mass_from(largest.values)
    fits = strata * largest.values <= (1 - _SLACK) * left
    # One stratum holds any cell: m never passes n - 1, so all other cells keep their chance.
    fits = fits | (strata == 1)
    m = fits.to(torch.uint8).argmax(-1, keepdim=True)

    certain = slot < m
    shared = attention.scatter(-1, largest.indices, largest.values.masked_fill(certain, 0.0))
    left, strata = left.gather(-1, m), n - m
    index = locate(shared, (u + slot - m) / strata)
    # Nothing left to share: fewer than n cells have any attention, the largest hold them all.
    index = torch.where(certain | (left == 0), largest.indices, index)
    weight = torch.where(certain, largest.values, left / strata)

    index, order = index.sort(-1)
    return index, weight.gather(-1, order)
