"""Seeded goodness of fit, where enumeration is out of reach.

Every threshold is set so that a correct sampler fails a fresh seed with probability below 1e-6 for
each test function; the seeds are fixed, so a passing test stays passing.
"""

from __future__ import annotations

import math

import pytest
import torch

from foveate import Sampler, Sequential, expectation
from problems import UNBIASED

K, N, DRAWS = 1024, 10, 20_000
unbiased = pytest.mark.parametrize("sampler", [sampler for sampler, _ in UNBIASED], ids=repr)


@unbiased
@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0])
def test_value_and_gradient_at_a_thousand_cells(sampler: Sampler, scale: float) -> None:
    generator = torch.Generator().manual_seed(11)
    logits = scale * torch.randn(K, dtype=torch.float64, generator=generator)
    features = torch.randn(K, 2, dtype=torch.float64, generator=generator)
    direction = torch.randn(K, dtype=torch.float64, generator=generator)
    attention = logits.softmax(0)
    full = attention @ features

    log_attention = logits.log_softmax(0).expand(DRAWS, K)
    draw = sampler.draw(log_attention, N, generator)
    drawn = features[draw.index]
    value = expectation(log_attention, draw, drawn)
    # d z / d logits along `direction`: log a changes by direction - <a, direction>.
    slope = direction - attention @ direction
    gradient = (draw.weight[..., None] * slope[draw.index][..., None] * drawn).sum(1)
    full_gradient = (attention * slope) @ features

    for estimate, truth in ((value, full), (gradient, full_gradient)):
        error = (estimate.mean(0) - truth) / (estimate.std(0) / math.sqrt(DRAWS))
        # Four normal numbers beyond 5.5 standard errors: 4 * 4e-8.
        assert error.abs().max() < 5.5


def test_orders_are_as_frequent_as_they_should_be() -> None:
    attention = torch.tensor([0.45, 0.3, 0.15, 0.1], dtype=torch.float64)
    generator = torch.Generator().manual_seed(5)
    draws = 50_000
    index = Sequential().draw(attention.log().expand(draws, 4), 2, generator).index
    observed = torch.bincount(index[:, 0] * 4 + index[:, 1], minlength=16).double().view(4, 4)
    expected = attention[:, None] * attention / (1 - attention[:, None])
    off_diagonal = ~torch.eye(4, dtype=torch.bool)
    expected = draws * expected[off_diagonal]
    statistic = ((observed[off_diagonal] - expected) ** 2 / expected).sum()
    assert observed.diagonal().sum() == 0
    assert statistic < 49.2  # chi-squared with 11 degrees of freedom: probability 9e-7


@unbiased
def test_every_cell_gets_its_due(sampler: Sampler) -> None:
    # E[weight summed where cell k was drawn] is a_k: the estimator on indicator features.
    generator = torch.Generator().manual_seed(9)
    attention = torch.randn(50, dtype=torch.float64, generator=generator).softmax(0)
    draw = sampler.draw(attention.log().expand(DRAWS, 50), 5, generator)
    credit = torch.zeros(DRAWS, 50, dtype=torch.float64).scatter_add_(1, draw.index, draw.weight)
    error = (credit.mean(0) - attention) / (credit.std(0) / math.sqrt(DRAWS))
    # Fifty numbers beyond 6 standard errors: 50 * 2e-9, with room for the skew of rare cells.
    assert error.abs().max() < 6
