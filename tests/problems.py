"""Small exact problems, and every draw that a sampler can make on them with its probability.

A sampler takes all its chance from `torch.rand`, so a test that decides what `torch.rand` returns
decides the draw. For each sampler below there is one way to list numbers that lead to every
possible draw, and how likely each is; the sampler then runs on all of them at once, as a batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor

from foveate import Draw, Replacement, Sampler, Sequential, Systematic, Unordered
from foveate.sampling.curve import curve_order


@dataclass(frozen=True)
class Problem:
    """An attention map and a feature for each of its cells, both in float64."""

    name: str
    logits: Tensor  # (k,)
    features: Tensor  # (k, d)

    def __str__(self) -> str:
        return self.name


def _problem(name: str, logits: list[float]) -> Problem:
    generator = torch.Generator().manual_seed(len(name))
    features = torch.randn(len(logits), 3, dtype=torch.float64, generator=generator)
    return Problem(name, torch.tensor(logits, dtype=torch.float64), features)


PROBLEMS = [
    _problem("flat", [0.0] * 6),
    _problem("gentle", [0.1, -0.4, 0.7, 0.0, 0.3]),
    _problem("medium", [1.5, -0.5, 0.2, -1.2, 2.0, 0.4, -0.3]),
    _problem("peaked", [4.0, -2.0, 1.0, 0.5, -1.0, 3.0]),
    _problem("two peaks and ties", [6.0, 6.0, 0.0, 0.0, 0.0]),
    _problem("nearly one-hot", [20.0, 0.0, 1.0, -1.0, 0.5]),
    _problem("one-hot to rounding", [60.0, 0.0, 1.0, -1.0, 0.5]),
    _problem("impossible cells", [1.0, -math.inf, 0.0, 2.0, -math.inf, -1.0]),
    _problem("one cell", [0.3]),
]


@dataclass(frozen=True)
class Outcomes:
    """The numbers that chance may hand a sampler, one row for each draw, and their likelihoods."""

    chance: Tensor  # (draws, ...)
    probability: Tensor  # (draws,)


def every_order(attention: Tensor, n: int) -> Outcomes:
    """All ordered draws without replacement, of probability prod_m a_m / (1 - sum_{j<m} a_j)."""
    attention = attention.flatten()
    possible = (attention > 0).nonzero()[:, 0].tolist()
    uniforms, probabilities = [], []
    for order in itertools.permutations(possible, min(n, len(possible))):
        others = [cell for cell in possible if cell not in order]
        # Cell k rings after an exponential time; time = a_k * place makes `order` the order.
        time = torch.ones_like(attention)
        for place, cell in enumerate([*order, *others], start=1):
            time[cell] = attention[cell] * place * 1e-2
        uniforms.append(-torch.expm1(-time))
        probability, left = 1.0, attention.clone()
        for cell in order:
            probability *= (left[cell] / left.sum()).item()
            left[cell] = 0.0
        probabilities.append(probability)
    return Outcomes(torch.stack(uniforms), torch.tensor(probabilities, dtype=torch.float64))


def every_tuple(attention: Tensor, n: int) -> Outcomes:
    """All n-tuples of independent draws."""
    attention = attention.flatten()
    middle = attention.cumsum(0) - attention / 2
    possible = (attention > 0).nonzero()[:, 0]
    cells = torch.cartesian_prod(*[possible] * n).reshape(-1, n)
    return Outcomes(middle[cells], attention[cells].prod(-1))


def every_phase(attention: Tensor, n: int) -> Outcomes:
    """The draw is piecewise constant in u: one u from each piece, and the length of the piece.

    Strata follow the curve, so the attention comes in the shape of its map.
    """
    if attention.ndim > 1:
        attention = attention.flatten()[curve_order(tuple(attention.shape), attention.device)]
    inclusion = _inclusion(attention, n)
    ends = torch.cat([torch.zeros(1), inclusion.cumsum(0) % 1, torch.ones(1)]).sort().values
    # An end that should be 0 and rounds to 1e-16 or to 1 - 1e-16 only adds a tiny piece.
    return Outcomes((ends[:-1] + ends[1:])[:, None] / 2, ends.diff())


def _inclusion(attention: Tensor, n: int) -> Tensor:
    """π_k = min(1, c a_k) with sum n, straight from its definition."""
    if n >= (attention > 0).sum():
        return (attention > 0).double()
    certain = torch.zeros_like(attention, dtype=torch.bool)
    while True:
        shared = attention.masked_fill(certain, 0.0)
        inclusion = (n - certain.sum()) * shared / shared.sum()
        if not (inclusion > 1).any():
            return inclusion.masked_fill(certain, 1.0)
        certain |= inclusion > 1


UNBIASED: list[tuple[Sampler, Callable[[Tensor, int], Outcomes]]] = [
    (Replacement(), every_tuple),
    (Sequential(), every_order),
    (Unordered(), every_order),
    (Systematic(), every_phase),
]


def enumerate_draws(
    sampler: Sampler, outcomes: Outcomes, log_attention: Tensor, n: int
) -> tuple[Draw, Tensor]:
    """All draws of a sampler as one batch, and the probability of each."""
    batch = log_attention.detach().expand(len(outcomes.probability), *log_attention.shape)
    with mock.patch("torch.rand", lambda shape, **_: outcomes.chance.reshape(shape)):
        draw = sampler.draw(batch, n)
    return draw, outcomes.probability
