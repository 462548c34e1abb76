"""`spread` in one launch on a GPU, where some fifty small ones would take most of a draw's time.

One program draws for one image. It takes the certain cells out one by one, the largest first, and
then counts, for each stratum, the cells that its threshold has passed. Only sums may round
otherwise than in the reference.
"""

from __future__ import annotations

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from foveate.types import Float64, Int64

_BLOCK_OF_PAIRS = 2**14
"""Cells times thresholds that are compared at one time."""


@triton.jit
@no_type_check
def _remaining(attention, cells, start, last_value, last_cell, block: tl.constexpr):
    """A block of cells, 0 where they are certain already."""
    cell = start + tl.arange(0, block)
    value = tl.load(attention + cell, mask=cell < cells, other=0.0)
    certain = (value > last_value) | ((value == last_value) & (cell <= last_cell))
    return cell, value, certain


@triton.jit
@no_type_check
def _look(attention, cells, last_value, last_cell, block: tl.constexpr):
    """The largest cell that is not certain yet, and the mass of all of those."""
    best = tl.full((), -1.0, tl.float64)
    where = tl.full((), 0, tl.int64)
    mass = tl.zeros((block,), tl.float64)
    for start in range(0, cells, block):
        cell, value, certain = _remaining(attention, cells, start, last_value, last_cell, block)
        open_value = tl.where(certain | (cell >= cells), -1.0, value)
        mass += tl.where(certain, 0.0, value)
        largest, at = tl.max(open_value, axis=0, return_indices=True)
        where = tl.where(largest > best, start + at.to(tl.int64), where)
        best = tl.maximum(best, largest)
    return best, where, tl.sum(mass, axis=0)


@triton.jit
@no_type_check
def _spread(
    attention,
    u,
    index,
    weight,
    cells,
    n,
    slack: tl.constexpr,
    block: tl.constexpr,
    slots: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    attention += image * cells
    slot = tl.arange(0, slots)
    drawn = tl.zeros((slots,), tl.int64)
    weighed = tl.zeros((slots,), tl.float64)

    # The certain cells.
    m = tl.full((), 0, tl.int32)
    last_value = tl.full((), float("inf"), tl.float64)
    last_cell = tl.full((), -1, tl.int64)
    value, cell, left = _look(attention, cells, last_value, last_cell, block)
    while (m < n - 1) & (((n - m) * value > (1.0 - slack) * left) | (left == 0.0)):
        drawn = tl.where(slot == m, cell, drawn)
        weighed = tl.where(slot == m, value, weighed)
        m += 1
        last_value, last_cell = value, cell
        value, cell, left = _look(attention, cells, last_value, last_cell, block)

    # The others, one from each stratum.
    strata = (n - m).to(tl.float64)
    fraction = (tl.load(u + image) + (slot - m).to(tl.float64)) / strata
    threshold = tl.minimum(fraction * left, left * (1.0 - 2.220446049250313e-16))
    passed = tl.zeros((slots,), tl.int64)
    before = tl.full((), 0.0, tl.float64)
    for start in range(0, cells, block):
        inside, mass, certain = _remaining(attention, cells, start, last_value, last_cell, block)
        mass = tl.where(certain | (inside >= cells), 0.0, mass)
        cumulative = before + tl.cumsum(mass, axis=0)
        below = (cumulative[:, None] <= threshold[None, :]) & (inside < cells)[:, None]
        passed += tl.sum(below.to(tl.int64), axis=0)
        before += tl.sum(mass, axis=0)
    passed = tl.where(left == 0.0, cell, tl.minimum(passed, cells - 1))
    drawn = tl.where(slot < m, drawn, passed)
    weighed = tl.where(slot < m, weighed, left / strata)

    # In the order in which they came.
    there = slot < n
    earlier = (drawn[None, :] < drawn[:, None]) | (
        (drawn[None, :] == drawn[:, None]) & (slot[None, :] < slot[:, None])
    )
    rank = tl.sum((earlier & there[None, :]).to(tl.int32), axis=1)
    tl.store(index + image * n + rank, drawn, mask=there)
    tl.store(weight + image * n + rank, weighed, mask=there)


def spread_on_gpu(
    attention: Float64[Tensor, "b k"], n: int, u: Float64[Tensor, "b 1"], slack: float
) -> tuple[Int64[Tensor, "b n"], Float64[Tensor, "b n"]]:
    """See `strata.spread`."""
    b, cells = attention.shape
    index = torch.empty(b, n, dtype=torch.int64, device=attention.device)
    weight = torch.empty(b, n, dtype=torch.float64, device=attention.device)
    slots = max(16, triton.next_power_of_2(n))
    block = min(triton.next_power_of_2(cells), _BLOCK_OF_PAIRS // slots)
    _spread[(b,)](
        attention.contiguous(),
        u.contiguous(),
        index,
        weight,
        cells,
        n,
        slack=slack,
        block=block,
        slots=slots,
        num_warps=8,
    )
    return index, weight
