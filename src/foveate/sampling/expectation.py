"""The estimate of the full model from a draw, with its exact gradient.

If the weights w of a draw make sum_n w_n f_n unbiased for sum_k a_k f_k for every f, then

    z = sum_n stop(w_n) (a_n / stop(a_n)) f_n

has the same value, and plain autograd gives an unbiased gradient in both a and f: the gradient of
the full model, sum_k a_k (f_k grad log a_k + grad f_k), is itself such a sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.types import Draw, Float


def expectation(
    log_attention: Float[Tensor, "b *cells"], draw: Draw, features: Float[Tensor, "b n *d"]
) -> Float[Tensor, "b *d"]:
    """Estimate sum_k a_k f_k from the features of the drawn cells.

    Args:
        log_attention: the log-probabilities the draw was made from; gradients flow into them.
        draw: the drawn cells and their weights.
        features: one feature of any shape for each drawn cell; gradients flow into them.

    Returns:
        The weighted sum over the draw, in at least the attention's own precision.

    Raises:
        InputError: where the shapes do not belong together.

    Example:
        >>> from foveate import Systematic
        >>> log_attention = torch.randn(2, 8, 8).flatten(1).log_softmax(-1).view(2, 8, 8)
        >>> draw = Systematic().draw(log_attention, n=5)
        >>> features = torch.full((2, 5, 3), 2.0)  # what is the same everywhere comes back
        >>> torch.allclose(expectation(log_attention, draw, features), torch.full((2, 3), 2.0))
        True
    """
    if features.shape[:2] != draw.index.shape or len(log_attention) != len(draw.index):
        raise InputError(
            f"features must be (b, n, *d) and log_attention (b, *cells) for a draw of (b, n) = "
            f"{tuple(draw.index.shape)}, but they are {tuple(features.shape)} and "
            f"{tuple(log_attention.shape)}"
        )
    log_drawn = log_attention.flatten(1).gather(1, draw.index)
    # A drawn cell of probability 0 has weight 0; -inf - (-inf) would make it NaN.
    log_drawn = log_drawn.masked_fill(log_drawn == -torch.inf, 0.0)
    weight = draw.weight * (log_drawn - log_drawn.detach()).exp()
    weight = weight.reshape(*weight.shape, *[1] * (features.ndim - 2))
    return (weight * features).sum(1)
