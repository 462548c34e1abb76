"""The proof: over every possible draw, value and gradients average to the full model's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveate import Sampler, expectation
from problems import PROBLEMS, UNBIASED, Outcomes, Problem, enumerate_draws

CASES = [(problem, n) for problem in PROBLEMS for n in range(1, 5) if n <= len(problem.logits)]


def full_model(logits: Tensor, features: Tensor) -> Tensor:
    return logits.softmax(0) @ features


@pytest.mark.parametrize(("problem", "n"), CASES, ids=lambda value: str(value))
@pytest.mark.parametrize(("sampler", "outcomes_of"), UNBIASED, ids=lambda value: repr(value)[:11])
def test_value_and_gradients_equal_the_full_model(
    sampler: Sampler, outcomes_of: Callable[[Tensor, int], Outcomes], problem: Problem, n: int
) -> None:
    logits = problem.logits.clone().requires_grad_()
    features = problem.features.clone().requires_grad_()
    outcomes = outcomes_of(problem.logits.softmax(0), n)
    draw, probability = enumerate_draws(sampler, outcomes, problem.logits.log_softmax(0), n)
    assert abs(probability.sum() - 1) < 1e-12, "not every draw was listed"

    log_attention = logits.log_softmax(0).expand(len(probability), -1)
    estimates = expectation(log_attention, draw, features[draw.index])
    mean = probability @ estimates
    truth = full_model(logits, features)
    torch.testing.assert_close(mean, truth, rtol=0, atol=1e-10)

    for d in range(features.shape[1]):
        got = torch.autograd.grad(mean[d], (logits, features), retain_graph=True)
        expected = torch.autograd.grad(truth[d], (logits, features), retain_graph=True)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("sampler", "outcomes_of"), UNBIASED, ids=lambda value: repr(value)[:11])
def test_a_loss_on_top_gets_the_same_unbiased_gradient_for_linear_heads(
    sampler: Sampler, outcomes_of: Callable[[Tensor, int], Outcomes]
) -> None:
    problem = PROBLEMS[2]
    cells = problem.logits[:6].reshape(2, 3)  # a map with two axes
    features = problem.features[:6]
    head = torch.nn.Linear(3, 2, dtype=torch.float64)
    outcomes = outcomes_of(cells.flatten().softmax(0).view(2, 3), 3)
    log_attention = cells.flatten().log_softmax(0).view(2, 3)
    draw, probability = enumerate_draws(sampler, outcomes, log_attention, 3)

    mean = probability @ head(
        expectation(log_attention.expand(len(probability), 2, 3), draw, features[draw.index])
    )
    torch.testing.assert_close(
        mean, head(full_model(cells.flatten(), features)), rtol=0, atol=1e-10
    )
