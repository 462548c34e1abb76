"""The entropy of an attention map, for the regulariser that delays the choice of where to look."""

from __future__ import annotations

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
    log_attention = log_attention.flatten(1)
    finite = log_attention.masked_fill(log_attention == -torch.inf, 0.0)
    return -(log_attention.exp() * finite).sum(-1)
