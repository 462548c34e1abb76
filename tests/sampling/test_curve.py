from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foveate import Systematic
from foveate.sampling.curve import curve_order

CPU = torch.device("cpu")


@given(st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_every_cell_is_passed_once(cells: list[int]) -> None:
    order = curve_order(tuple(cells), CPU)
    assert sorted(order.tolist()) == list(range(math.prod(cells)))


@pytest.mark.parametrize("cells", [(2, 2), (8, 8), (32, 32), (4, 4, 4), (8, 8, 8), (16, 1)])
def test_each_step_goes_to_a_neighbour(cells: tuple[int, ...]) -> None:
    places = np.stack(np.unravel_index(curve_order(cells, CPU).numpy(), cells), -1)
    assert (np.abs(np.diff(places, axis=0)).sum(-1) == 1).all()


def test_the_order_is_made_once_for_each_shape() -> None:
    assert curve_order((5, 7), CPU) is curve_order((5, 7), CPU)


def test_draws_from_a_flat_map_spread_over_both_axes() -> None:
    log_attention = torch.full((200, 32, 32), 1 / 1024).log()
    index = Systematic().draw(log_attention, 16, torch.Generator().manual_seed(0)).index
    # One draw in each of the 4x4 blocks of 8x8 cells.
    block = index // 32 // 8 * 4 + index % 32 // 8
    assert (block.sort(-1).values == torch.arange(16)).all()
