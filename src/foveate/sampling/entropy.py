"""The entropy of an attention map, for the regulariser that delays the choice of where to look."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from foveate.types import Float


def entropy(log_attention: Float[Tensor, "b *cells"]) -> Float[Tensor, " b"]:
    """H(a) = -sum_k a_k log a_k in nats, from 0 (one cell) to log K (all cells alike).

    Cells of probability 0 add nothing, and no gradient.

    Example:
        >>> entropy(torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]]).log())
        tensor([1.3863, 0.6931])
    """
    result: Tensor = _Entropy.apply(log_attention.flatten(1))  # type: ignore[no-untyped-call]
    return result


class _Entropy(torch.autograd.Function):
    """Keeps log a, which others keep too, and nothing else: maps are large where cells are many."""

    generate_vmap_rule = True

    @staticmethod
    def forward(log_attention: Tensor) -> Tensor:
        return -(log_attention.exp() * _finite(log_attention)).sum(-1)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        context.save_for_backward(*inputs)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        log_attention: Tensor = context.saved_tensors[0]
        return -gradient[..., None] * log_attention.exp() * (_finite(log_attention) + 1)


def _finite(log_attention: Tensor) -> Tensor:
    return log_attention.masked_fill(log_attention == -torch.inf, 0.0)
