from __future__ import annotations

import pytest
import torch

from foveate import Draw, Systematic, expectation
from foveate.errors import InputError


def test_features_of_any_shape() -> None:
    log_attention = torch.zeros(2, 3, 3).flatten(1).log_softmax(-1).view(2, 3, 3)
    draw = Systematic().draw(log_attention, 4)
    for shape in [(), (5,), (5, 2, 2)]:
        features = torch.randn(2, 4, *shape)
        expected = (draw.weight.reshape(2, 4, *[1] * len(shape)) * features).sum(1)
        torch.testing.assert_close(expectation(log_attention, draw, features), expected)


def test_gradient_is_that_of_the_importance_weighted_sum() -> None:
    logits = torch.randn(2, 6, dtype=torch.float64)
    draw = Systematic().draw(logits.log_softmax(-1), 3)
    reference = logits.softmax(-1).gather(1, draw.index)
    features = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    logits.requires_grad_()

    z = expectation(logits.log_softmax(-1), draw, features)
    ratio = logits.softmax(-1).gather(1, draw.index) / reference
    expected = ((draw.weight * ratio)[..., None] * features).sum(1)
    torch.testing.assert_close(z, expected)
    torch.testing.assert_close(
        torch.autograd.grad(z.square().sum(), (logits, features)),
        torch.autograd.grad(expected.square().sum(), (logits, features)),
    )


def test_half_precision_features_are_summed_in_the_precision_of_the_attention() -> None:
    log_attention = torch.zeros(1, 9).log_softmax(-1)
    draw = Systematic().draw(log_attention, 9)
    assert expectation(log_attention, draw, torch.ones(1, 9, 2).half()).dtype == torch.float32


@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 4, 3)])
@pytest.mark.usefixtures("unchecked_shapes")
def test_shapes_that_do_not_belong_together(shape: tuple[int, ...]) -> None:
    draw = Draw(torch.zeros(2, 4, dtype=torch.int64), torch.ones(2, 4))
    with pytest.raises(InputError, match=r"for a draw of \(b, n\) = \(2, 4\), but they are"):
        expectation(torch.zeros(2, 9), draw, torch.zeros(shape))
