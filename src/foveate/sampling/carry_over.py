"""A draw that was made from older attention, weighed for the attention of now.

Patches take long to read, and attention changes little from one step to the next. So cells may be
drawn before the step that needs them, from attention a' that is one step old. If the weights w make
sum_n w_n f_n unbiased for sum_k a'_k f_k for every f, then put f a / a' for f:

    E[ sum_n w_n (a_n / a'_n) f_n ] = sum_k a'_k (a_k / a'_k) f_k = sum_k a_k f_k.

So w a / a' are unbiased weights for the attention a of now, whatever sampler made the draw, and
`expectation` gives the exact gradient with them as with any others. (Where w is a' / π, with π the
probability to be drawn, that is a / π: attention of now over the probability that was used.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.types import Draw, Float


def carry_over(
    draw: Draw,
    log_attention_then: Float[Tensor, "b *cells"],
    log_attention_now: Float[Tensor, "b *cells"],
) -> Draw:
    """The same cells, weighed for other attention than they were drawn from.

    The sum is exact where every cell that is possible now was possible then: one that was not is
    never drawn, and is missing from the estimate. Smoothed attention keeps every cell possible. The
    weights sum to 1 in the mean only; a biased draw, such as that of `TopK`, stays biased.

    Args:
        draw: the drawn cells, with unbiased weights for the attention of then.
        log_attention_then: the log-probabilities that the draw was made from.
        log_attention_now: those that the estimate is for.

    Returns:
        The draw with weights for the attention of now, without gradient. A cell that is not
        possible now, or was not then, weighs 0.

    Raises:
        InputError: where the shapes do not belong together.

    Example:
        >>> from foveate import Systematic
        >>> then, now = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.75, 0.25]]).log()
        >>> carry_over(Systematic().draw(then, n=2), then, now)
        Draw(index=tensor([[0, 1]]), weight=tensor([[0.7500, 0.2500]]))
    """
    alike = log_attention_then.shape == log_attention_now.shape
    if not alike or len(draw.index) != len(log_attention_now):
        raise InputError(
            f"a draw of (b, n) = {tuple(draw.index.shape)} can be carried over between two maps "
            f"(b, *cells) of one shape, but they are {tuple(log_attention_then.shape)} and "
            f"{tuple(log_attention_now.shape)}"
        )
    then, now = (
        log_attention.detach().flatten(1).gather(1, draw.index)
        for log_attention in (log_attention_then, log_attention_now)
    )
    # A cell that was drawn though its probability was 0 has weight 0; -inf - (-inf) is NaN.
    ratio = (now - then).exp().masked_fill(then == -torch.inf, 0.0)
    return Draw(draw.index, draw.weight * ratio)
