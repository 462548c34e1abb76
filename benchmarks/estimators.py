"""The gradient that one draw gives: by foveate's rule, and by the authors' published code.

For sampling without replacement the published code averages the estimates

    F_k = sum_{j<k} a_j f_j + m_k f_k,   m_k = 1 - sum_{j<k} a_j,

as `Sequential` does, but hands the attention of the k-th drawn cell the gradient

    ( F_k m_k / a_k + sum_{j<k} f_j - (k - 1) f_k ) / n,

which is not the gradient of anything it estimates.
"""

from __future__ import annotations

import torch
from torch import Tensor


def published_logit_gradient(attention: Tensor, index: Tensor, feature: Tensor) -> Tensor:
    """The published gradient of a scalar feature's estimate, in the logits.

    Args:
        attention: (k,) probabilities.
        index: (draws, n) cells in the order in which they were drawn.
        feature: (k,) one number for each cell.

    Returns:
        (draws, k), the gradient that each draw gives.
    """
    n = index.shape[1]
    a, f = attention[index], feature[index]
    before = (a * f).cumsum(1) - a * f
    mass = 1 - (a.cumsum(1) - a)
    features_before = f.cumsum(1) - f
    places = torch.arange(n, dtype=a.dtype)
    in_attention = ((before + mass * f) * mass / a + features_before - places * f) / n
    in_attention = torch.zeros(len(index), len(attention), dtype=a.dtype).scatter_add_(
        1, index, in_attention
    )
    # Through the softmax: a_j (g_j - sum_k a_k g_k).
    return attention * (in_attention - (in_attention @ attention)[:, None])


def weighted_logit_gradient(
    attention: Tensor, index: Tensor, weight: Tensor, feature: Tensor
) -> Tensor:
    """The gradient of a scalar feature's estimate by foveate's rule, sum_n w_n f_n grad log a_n.

    Args:
        attention: (k,) probabilities.
        index: (draws, n) cells.
        weight: (draws, n) their weights.
        feature: (k,) one number for each cell.

    Returns:
        (draws, k), the gradient in the logits that each draw gives.
    """
    contribution = weight * feature[index]
    gradient = torch.zeros(len(index), len(attention), dtype=attention.dtype)
    gradient.scatter_add_(1, index, contribution)
    return gradient - attention * contribution.sum(1, keepdim=True)
