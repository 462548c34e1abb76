"""The order in which stratified draws pass over a map: along a Hilbert curve.

Strata are intervals of this order. Row by row they would be strips that cut through everything, and
smooth features would repeat from strip to strip: draws one stratum apart then see the same, and the
variance can exceed that of independent draws. Along a Hilbert curve strata are compact regions.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveate.types import Int64


def curve_order(cells: tuple[int, ...], device: torch.device) -> Int64[Tensor, " k"]:
    """The flat index of each cell of a map, in the order of the curve.

    A map that is no cube of a power of two takes the part of the curve that passes it.

    Example:
        >>> curve_order((4, 4), torch.device("cpu"))
        tensor([ 0,  4,  5,  1,  2,  3,  7,  6, 10, 11, 15, 14, 13,  9,  8, 12])
    """
    if torch.compiler.is_compiling():
        compiled: Tensor = _opaque(list(cells), device)
        return compiled
    return _remembered(cells, device)


@functools.lru_cache(maxsize=16)
def _remembered(cells: tuple[int, ...], device: torch.device) -> Int64[Tensor, " k"]:
    return torch.from_numpy(np.argsort(_hilbert_index(cells), kind="stable")).to(device)


@torch.library.custom_op(
    "foveate::curve_order", mutates_args=(), schema="(int[] cells, Device device) -> Tensor"
)
def _opaque(cells: list[int], device: torch.device) -> Tensor:
    # A copy: compiled code may write into what it has been given.
    return _remembered(tuple(cells), device).clone()


@_opaque.register_fake
def _(cells: list[int], device: torch.device) -> Tensor:
    return torch.empty(math.prod(cells), dtype=torch.int64, device=device)


def _hilbert_index(cells: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of each cell along the curve (Skilling 2004, "Programming the Hilbert curve")."""
    axes = [axis.ravel() for axis in np.indices(cells)]
    bits = max(1, (max(cells) - 1).bit_length())
    for bit in reversed(range(1, bits)):
        low = (1 << bit) - 1
        for axis in axes:
            high = (axis >> bit) & 1 == 1
            swap = np.where(high, 0, (axes[0] ^ axis) & low)
            axes[0] ^= np.where(high, low, swap)
            axis ^= swap
    for before, axis in itertools.pairwise(axes):
        axis ^= before
    flips = np.zeros_like(axes[0])
    for bit in reversed(range(1, bits)):
        flips ^= np.where((axes[-1] >> bit) & 1 == 1, (1 << bit) - 1, 0)
    place: np.ndarray[Any, np.dtype[np.int64]] = np.zeros_like(axes[0])
    for bit in reversed(range(bits)):
        for axis in axes:
            place = (place << 1) | (((axis ^ flips) >> bit) & 1)
    return place
