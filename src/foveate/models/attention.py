"""Networks that look at the overview and say how much each cell matters.

An attention network maps an overview (b, c, h_overview, w_overview) to logits of its cells, (b, h,
w) or (b, 1, h, w). One that loses overview pixels at the border says how many in `margin`. The last
layer has no bias: the softmax would take it out again.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from foveate.errors import InputError
from foveate.models.cells import pool_to
from foveate.models.contrast import ContrastPrior
from foveate.models.convolve import convolve
from foveate.types import Float, Size


def log_normalise(logits: Float[Tensor, "b ..."]) -> Float[Tensor, "b h w"]:
    """Logits of the cells as log-probabilities over all of them, in float32 at least.

    What is normalised already stays as it is, and the rounding of its gradient becomes less.
    """
    logits = _map_of(logits)
    return logits.flatten(1).log_softmax(-1).view_as(logits)


def _map_of(logits: Float[Tensor, "b ..."]) -> Float[Tensor, "b h w"]:
    """What a network gave, as a map in float32 at least."""
    if logits.ndim == 4 and logits.shape[1] == 1:
        logits = logits.squeeze(1)
    if logits.ndim != 3:
        raise InputError(
            f"an attention network must give (b, h, w) or (b, 1, h, w) logits, "
            f"but gave {tuple(logits.shape)}"
        )
    return logits if logits.dtype == torch.float64 else logits.float()


def margin_of(attention: nn.Module) -> Size:
    """The overview pixels that an attention network loses on each side, (y, x)."""
    margin = getattr(attention, "margin", 0)
    return (margin, margin) if isinstance(margin, int) else (margin[0], margin[1])


class Attention(nn.Module):
    """An attention network with a prior and smoothing: overview -> log_attention.

    a = (1 - ε) softmax(network + prior) + ε / K. Smoothing keeps every cell possible, so that a
    network that is wrong and certain can still learn.

    A curious attention gives, in training, a share of itself to wherever there is contrast. The
    feature network then goes on seeing what attention has learnt to leave out, and knows it for
    nothing when it meets something like it that attention has not learnt to leave out.

    Args:
        network: the attention network.
        prior: added to its logits; None is the paper.
        smoothing: ε; the paper has 1e-5 on Megapixel MNIST and 1e-4 on speed limits.
        curiosity: the share that goes to contrast in training; above 0 it needs a prior.

    Example:
        >>> attention = Attention(ConvAttention(1), prior=ContrastPrior(), smoothing=1e-5)
        >>> log_attention = attention(torch.rand(2, 1, 30, 40))
        >>> log_attention.shape, log_attention.exp().sum().round().item()
        (torch.Size([2, 30, 40]), 2.0)
    """

    def __init__(
        self,
        network: nn.Module,
        prior: ContrastPrior | None = None,
        smoothing: float = 0.0,
        curiosity: float = 0.0,
    ) -> None:
        super().__init__()
        for name, share in (("smoothing", smoothing), ("curiosity", curiosity)):
            if not 0.0 <= share < 1.0:
                raise InputError(f"{name} must be in [0, 1), but is {share}")
        if curiosity > 0 and prior is None:
            raise InputError(
                f"a curiosity of {curiosity} looks where the prior does, but there is none; "
                "leave it at 0 or add a ContrastPrior"
            )
        self.network = network
        self.prior = prior
        self.smoothing = smoothing
        self.curiosity = curiosity
        self.margin = margin_of(network)

    def forward(self, overview: Float[Tensor, "b c oh ow"]) -> Float[Tensor, "b h w"]:
        """The log-probability of each cell."""
        logits = _map_of(self.network(overview))
        if self.prior is None:
            log_attention = log_normalise(logits)
        else:
            cells = (logits.shape[1], logits.shape[2])
            contrast = self.prior.log_contrast(overview, cells, self.margin)
            log_attention = log_normalise(logits + self.prior.strength * contrast)
            if self.training and self.curiosity > 0:
                log_attention = _mix(log_attention, log_normalise(contrast), self.curiosity)
        if self.smoothing > 0:
            flat = log_attention.new_full((), -math.log(log_attention[0].numel()))
            log_attention = _mix(log_attention, flat, self.smoothing)
        return log_attention


def _mix(log_one: Tensor, log_other: Tensor, share: float) -> Tensor:
    """The logarithm of (1 - share) one + share other."""
    return torch.logaddexp(log_one + math.log1p(-share), log_other + math.log(share))


class ConvAttention(nn.Module):
    """The paper's attention network for Megapixel MNIST: padded 3x3 convolutions, a cell a pixel.

    Args:
        in_channels: channels of the overview.
        channels: channels between the layers.
        layers: how many convolutions, the last of which gives the logits.
    """

    margin = 0

    def __init__(self, in_channels: int, channels: int = 8, layers: int = 3) -> None:
        super().__init__()
        sizes = [in_channels, *[channels] * (layers - 1)]
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1) for before, after in itertools.pairwise(sizes)
        )
        self.layers.append(nn.Conv2d(sizes[-1], 1, 3, padding=1, bias=False))

    def forward(self, overview: Float[Tensor, "b c oh ow"]) -> Float[Tensor, "b h w"]:
        """The logit of each cell."""
        return convolve(overview, self.layers, "tanh").squeeze(1)


class PooledAttention(nn.Module):
    """The paper's attention network for speed limits: unpadded 3x3 convolutions, then max-pooling.

    Where the pooled map does not divide evenly, the pools are stretched to cover all of it, so that
    `Grid`'s arithmetic holds at any overview size.

    Args:
        in_channels: channels of the overview.
        channels: channels after each convolution but the last, which gives the logits.
        pool: overview pixels a cell is wide.
    """

    def __init__(
        self, in_channels: int, channels: tuple[int, ...] = (8, 16, 32), pool: int = 8
    ) -> None:
        super().__init__()
        sizes = [in_channels, *channels]
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, 3) for before, after in itertools.pairwise(sizes)
        )
        self.layers.append(nn.Conv2d(sizes[-1], 1, 3, bias=False))
        self.pool = pool
        self.margin = len(self.layers)

    def forward(self, overview: Float[Tensor, "b c oh ow"]) -> Float[Tensor, "b h w"]:
        """The logit of each cell."""
        if min(overview.shape[2:]) < 2 * self.margin + self.pool:
            raise InputError(
                f"an overview of {tuple(overview.shape[2:])} leaves no cell after "
                f"{self.margin} unpadded convolutions and pooling by {self.pool}; "
                "enlarge overview_size or lower pool"
            )
        logits = convolve(overview, self.layers, "relu").squeeze(1)
        return pool_to(logits, (logits.shape[1] // self.pool, logits.shape[2] // self.pool))


class UniformAttention(nn.Module):
    """Looks everywhere alike: the baseline U-n, which draws patches blindly.

    Args:
        cells: rows and columns of the attention map.
    """

    margin = 0

    def __init__(self, cells: Size) -> None:
        super().__init__()
        self.cells = cells

    def forward(self, overview: Float[Tensor, "b c oh ow"]) -> Float[Tensor, "b h w"]:
        """The same logit for each cell."""
        return overview.new_zeros(len(overview), *self.cells)
