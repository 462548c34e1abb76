from __future__ import annotations

import math

import torch

from foveate import entropy


def test_flat_is_log_k_and_one_hot_is_zero() -> None:
    maps = torch.stack([torch.full((4, 5), 1 / 20), torch.eye(20)[7].view(4, 5)]).log()
    torch.testing.assert_close(entropy(maps), torch.tensor([math.log(20), 0.0]))


def test_gradcheck() -> None:
    logits = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: entropy(x.log_softmax(-1)), logits)


def test_impossible_cells_give_no_gradient_and_no_nan() -> None:
    logits = torch.tensor([[1.0, -math.inf, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(entropy(logits.log_softmax(-1)).sum(), logits)
    assert gradient.isfinite().all()
    assert gradient[0, 1] == 0
