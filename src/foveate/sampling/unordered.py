"""Sampling without replacement, weighed by the drawn set alone (Murthy 1957; Kool et al. 2020).

Murthy's estimator is Sequential's mean over all orders in which the same set S could have been
drawn: it keeps the expectation and has less variance. With the cells as competing exponential
clocks of rates a_k, its weights are

    w_k = a_k E_t[ 1 / (1 - exp(-a_k t)) ],   t of density ∝ exp(-R t) prod_S (1 - exp(-a_j t)),

R = 1 - sum_S a the mass not drawn. In s = log t the density is log-concave, and analytic in a strip
of half-width π/2, so that the trapezoid rule converges exponentially.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from foveate.sampling.gumbel import draw_in_order
from foveate.sampling.sampler import Sampler
from foveate.sampling.strata import mass_outside
from foveate.types import Bool, Float64, Int64

_POINTS = 256
_BISECTIONS = 16
_DROP = 40.0
"""How far the log-density falls towards the ends of the integral: exp(-40) < 1e-17."""


class Unordered(Sampler):
    """Draws n distinct cells, and weighs them as a set: the order tells nothing.

    Example:
        >>> log_attention = torch.tensor([[0.5, 0.5, 0.0]]).log()
        >>> Unordered().draw(log_attention, n=2).weight
        tensor([[0.5000, 0.5000]])
    """

    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """See `Sampler.sample`."""
        index = draw_in_order(attention, n, generator)
        drawn = attention.gather(-1, index)
        return index, murthy_weight(drawn, mass_outside(attention, index))


def murthy_weight(
    drawn: Float64[Tensor, "b n"], rest: Float64[Tensor, "b 1"]
) -> Float64[Tensor, "b n"]:
    """Weigh a drawn set by Murthy's estimator.

    Args:
        drawn: the attention of the drawn cells.
        rest: R, the attention of all other cells. Where it is 0 everything has been seen, and the
            weights are the attention itself; a drawn cell of attention 0 has weight 0.
    """
    everything_seen = rest <= 0
    log_rest = rest.masked_fill(everything_seen, 1.0).log()
    possible = drawn > 0
    # Time in units of 1/R: τ = R t, and rates a/R.
    log_rate = drawn.masked_fill(~possible, 1.0).log() - log_rest
    log_tau = _integration_points(log_rate, possible)  # (b, points)

    log_x = log_rate[:, :, None] + log_tau[:, None, :]  # (b, n, points)
    # log(1 - exp(-x)); for the smallest x it is log x to the last bit, even where x underflows.
    log_gone = torch.where(log_x < -36.0, log_x, torch.log(-torch.expm1(-log_x.exp())))
    log_gone = log_gone.masked_fill(~possible[:, :, None], 0.0)
    log_density = log_tau - log_tau.exp() + log_gone.sum(1)
    probability = log_density.softmax(-1)
    weight = (probability[:, None, :] * (drawn.log()[:, :, None] - log_gone).exp()).sum(-1)
    return torch.where(everything_seen, drawn, weight)


def _integration_points(
    log_rate: Float64[Tensor, "b n"], possible: Bool[Tensor, "b n"]
) -> Float64[Tensor, "b points"]:
    """Evenly spaced values of log τ over all of the density that matters.

    The log-density log τ - τ + sum_j log(1 - exp(-r_j τ)) has slope 1 - τ + sum_j h(r_j τ) with
    h(x) = x / (exp(x) - 1) in (0, 1]: its mode τ* lies in [1, n + 1]. Right of it the density falls
    by at least τ* (exp(y) - 1 - y) over a distance y; left of it, even without one of its factors
    (as in the integral for that factor's weight), by max(1, τ* - 1) y - τ*.
    """
    low = log_rate.new_zeros(len(log_rate), 1)
    high = torch.full_like(low, math.log(log_rate.shape[-1] + 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        x = (log_rate + middle).exp()
        h = torch.where(x > 0, x / torch.expm1(x), 1.0).nan_to_num(0.0) * possible
        rising = 1 - middle.exp() + h.sum(-1, keepdim=True) > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    mode = low.exp()
    left = low - (_DROP + mode) / (mode - 1).clamp(min=1.0)
    right = low + torch.log1p(_DROP / mode + (2 * _DROP / mode).sqrt())
    step = torch.linspace(0, 1, _POINTS, dtype=log_rate.dtype, device=log_rate.device)
    return left + (right - left) * step
