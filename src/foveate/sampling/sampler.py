"""What every sampler is: a rule that draws n cells and weighs them.

A draw's weights must make `sum_n weight * f[index]` unbiased for the full model `sum_k a_k f_k`,
whatever f is; `expectation` then gives the exact gradient too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.sampling.curve import curve_order
from foveate.sampling.strata import spread
from foveate.types import Draw, Float, Float64, Int64

_TOLERANCE = 1e-3
"""How far the log of the total attention may be from 0: float32 over 10^7 cells stays within."""


class Sampler(ABC):
    """Draws n cells of each attention map; subclasses say how in `sample`.

    Example:
        A sampler that always looks at the first cells:

        >>> class First(Sampler):
        ...     def sample(self, attention, n, generator):
        ...         return torch.arange(n).expand(len(attention), n), attention[:, :n]
        >>> First().draw(torch.full((1, 4), 0.25).log(), n=2)
        Draw(index=tensor([[0, 1]]), weight=tensor([[0.2500, 0.2500]]))
    """

    replaces: ClassVar[bool] = False
    """Whether a cell can be drawn twice, so that n may exceed the number of cells."""

    stratified: ClassVar[bool] = False
    """Whether `sample` cares which cells are neighbours. It is then given the cells in an order
    that keeps neighbours together; `settle` always is."""

    @abstractmethod
    def sample(
        self, attention: Float64[Tensor, "b k"], n: int, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """Draw n of k cells and weigh them.

        Args:
            attention: probabilities, checked and summing to 1.
            n: how many cells.
            generator: where every random number comes from.
        """

    def settle(
        self, attention: Float64[Tensor, "b k"], n: int
    ) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
        """The draw made without chance: the middle of each stratum of equal attention."""
        return spread(attention, n, attention.new_full((len(attention), 1), 0.5))

    def draw(
        self,
        log_attention: Float[Tensor, "b *cells"],
        n: int,
        generator: torch.Generator | None = None,
    ) -> Draw:
        """Draw n cells of each attention map at random.

        Args:
            log_attention: normalised log-probabilities, over any number of cell axes. -inf is a
                cell that is never looked at.
            n: how many cells.
            generator: where every random number comes from; torch's own by default.

        Returns:
            The drawn cells and their weights. The weights carry no gradient and are of the
            attention's own type.

        Raises:
            InputError: for n < 1, for more cells than there are, and for a wrong shape or type.
                Values (NaN, not normalised) are checked on the CPU only: on a GPU that would make
                the host wait; there NaN attention gives NaN weights, never a wrong number.
        """
        attention = self._check(log_attention, n)
        order = _curve(log_attention) if self.stratified else None
        with torch.no_grad():
            index, weight = self.sample(_reorder(attention, order), n, generator)
        return _draw(index, weight, order, log_attention.dtype)

    def draw_settled(self, log_attention: Float[Tensor, "b *cells"], n: int) -> Draw:
        """Draw n cells of each attention map without chance, for inference.

        An image's draw depends on its own attention alone, not on the batch it came in.
        """
        attention = self._check(log_attention, n)
        order = _curve(log_attention)
        with torch.no_grad():
            index, weight = self.settle(_reorder(attention, order), n)
        return _draw(index, weight, order, log_attention.dtype)

    def _check(self, log_attention: Float[Tensor, "b *cells"], n: int) -> Float64[Tensor, "b k"]:
        attention = _probabilities(log_attention)
        cells = attention.shape[-1]
        if n < 1:
            raise InputError(f"cannot draw n={n} cells; ask for at least one")
        if n > cells and not self.replaces:
            raise InputError(
                f"cannot draw n={n} cells without replacement from {cells}; "
                "lower n_patches or use Replacement()"
            )
        return attention

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _curve(log_attention: Float[Tensor, "b *cells"]) -> Int64[Tensor, " k"] | None:
    """The order that keeps neighbours together; that of a signal is its own."""
    cells = tuple(log_attention.shape[1:])
    return None if len(cells) == 1 else curve_order(cells, log_attention.device)


def _reorder(
    attention: Float64[Tensor, "b k"], order: Int64[Tensor, " k"] | None
) -> Float64[Tensor, "b k"]:
    return attention if order is None else attention[:, order]


def _draw(
    index: Int64[Tensor, "b n"],
    weight: Float64[Tensor, "b n"],
    order: Int64[Tensor, " k"] | None,
    dtype: torch.dtype,
) -> Draw:
    return Draw(index if order is None else order[index], weight.to(dtype))


def _probabilities(log_attention: Float[Tensor, "b *cells"]) -> Float64[Tensor, "b k"]:
    """Check log-probabilities and give the probabilities of the flattened cells, in float64."""
    shape = tuple(log_attention.shape)
    if log_attention.ndim < 2 or 0 in shape[1:]:
        raise InputError(
            f"log_attention must be (b, *cells) with at least one cell, but its shape is {shape}; "
            "for a single map add a batch axis with log_attention[None]"
        )
    if log_attention.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"log_attention must be float32 or float64, but is {log_attention.dtype}; "
            "call .float() before log_softmax, so that the probabilities still sum to 1"
        )
    log_attention = log_attention.detach().flatten(1)
    if log_attention.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_values(log_attention)
    return log_attention.double().softmax(-1)


def _check_values(log_attention: Float[Tensor, "b k"]) -> None:
    log_total = log_attention.logsumexp(-1)
    for row in (~(log_total.abs() < _TOLERANCE)).nonzero()[:1, 0].tolist():
        value = log_total[row].item()
        if math.isnan(value) or value == math.inf:
            raise InputError(
                f"log_attention of image {row} of the batch holds NaN or +inf; the attention "
                "network has diverged or its input is not finite: check the overview and lower "
                "the learning rate"
            )
        if value == -math.inf:
            raise InputError(
                f"log_attention of image {row} of the batch is -inf in every cell; "
                "at least one cell must be possible"
            )
        raise InputError(
            f"log_attention of image {row} of the batch sums to a probability of "
            f"{math.exp(min(value, 700.0)):.4g}, not 1; apply log_softmax over all cell axes"
        )
