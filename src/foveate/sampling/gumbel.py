"""Gumbel top-n: n cells without replacement, in the order in which they would be drawn one by one.

argsort of log a_k + Gumbel noise is such an order (Yellott 1977); -log of an exponential number is
Gumbel noise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.sampling.chance import exponential
from foveate.types import Float64, Int64


def draw_in_order(
    attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
) -> Int64[Tensor, "b n"]:
    """Draw n distinct cells, each from what the ones before it left over.

    A cell of attention 0 comes only after all others.
    """
    waiting = exponential(tuple(attention.shape), attention, generator)
    return (attention.log() - waiting.log()).topk(n, dim=-1).indices
