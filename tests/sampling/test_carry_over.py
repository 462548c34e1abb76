"""Draws from older attention stay unbiased for the attention of now, in value and gradient."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveate import Draw, Replacement, Sampler, Sequential, Systematic, TopK, Unordered, expectation
from foveate.errors import InputError
from foveate.sampling import carry_over
from problems import PROBLEMS, UNBIASED, Outcomes, Problem, enumerate_draws

CASES = [(problem, n) for problem in PROBLEMS for n in range(1, 5) if n <= len(problem.logits)]
ALL: list[Sampler] = [Systematic(), Unordered(), Sequential(), Replacement(), TopK()]


def moved(logits: Tensor, how: str) -> Tensor:
    """The logits of a step later; a cell that has become impossible is no matter."""
    change = torch.randn(len(logits), dtype=torch.float64)
    if how == "and one cell closed" and len(logits) > 1:
        change[-1] = -math.inf  # never the peak: ratios of 1e26 are beyond float64
    return logits + change


@pytest.mark.parametrize("how", ["a step", "and one cell closed"])
@pytest.mark.parametrize(("problem", "n"), CASES, ids=lambda value: str(value))
@pytest.mark.parametrize(("sampler", "outcomes_of"), UNBIASED, ids=lambda value: repr(value)[:11])
def test_value_and_gradients_equal_the_full_model_of_now(
    sampler: Sampler,
    outcomes_of: Callable[[Tensor, int], Outcomes],
    problem: Problem,
    n: int,
    how: str,
) -> None:
    then = problem.logits.log_softmax(0)
    draw, probability = enumerate_draws(sampler, outcomes_of(then.exp(), n), then, n)
    assert abs(probability.sum() - 1) < 1e-12, "not every draw was listed"

    logits = moved(problem.logits, how).requires_grad_()
    features = problem.features.clone().requires_grad_()
    now = logits.log_softmax(0).expand(len(probability), -1)
    carried = carry_over(draw, then.expand(len(probability), -1), now)
    assert not carried.weight.requires_grad
    mean = probability @ expectation(now, carried, features[carried.index])
    truth = logits.softmax(0) @ features
    torch.testing.assert_close(mean, truth, rtol=0, atol=1e-12)

    for d in range(features.shape[1]):
        got = torch.autograd.grad(mean[d], (logits, features), retain_graph=True)
        expected = torch.autograd.grad(truth[d], (logits, features), retain_graph=True)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_attention_that_stays_changes_nothing(sampler: Sampler) -> None:
    log_attention = torch.randn(3, 35).log_softmax(-1).view(3, 5, 7)
    draw = sampler.draw(log_attention, 4)
    carried = carry_over(draw, log_attention, log_attention.clone().requires_grad_())
    assert torch.equal(carried.index, draw.index)
    assert torch.equal(carried.weight, draw.weight)


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_impossible_cells_are_no_nan(sampler: Sampler) -> None:
    then = torch.tensor([[0.25, 0.0, 0.75, 0.0, 0.0]]).log()
    now = torch.tensor([[0.0, 0.25, 0.75, 0.0, 0.0]]).log().requires_grad_()
    draw = sampler.draw(then, 4)  # of two possible cells
    carried = carry_over(draw, then, now)
    assert carried.weight.isfinite().all()
    assert (carried.weight[carried.index != 2] == 0).all()
    z = expectation(now, carried, torch.ones(1, 4, 2))
    (gradient,) = torch.autograd.grad(z.sum(), now)
    assert z.isfinite().all()
    assert gradient.isfinite().all()


def test_weights_are_attention_of_now_over_the_probability_that_was_used() -> None:
    then, now = (torch.randn(2, 40).log_softmax(-1) for _ in range(2))
    draw = Systematic().draw(then, 5)
    inclusion = then.exp().gather(1, draw.index) / draw.weight
    expected = now.exp().gather(1, draw.index) / inclusion
    torch.testing.assert_close(carry_over(draw, then, now).weight, expected)


@pytest.mark.usefixtures("unchecked_shapes")
def test_shapes_that_do_not_belong_together() -> None:
    draw = Draw(torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3))
    maps = [torch.zeros(2, 4), torch.zeros(2, 5), torch.zeros(3, 4)]
    for then, now in [(maps[0], maps[1]), (maps[2], maps[2])]:
        with pytest.raises(InputError, match=r"between two maps .* of one shape, but they are"):
            carry_over(draw, then, now)
