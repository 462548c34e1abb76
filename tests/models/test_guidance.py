from __future__ import annotations

import math

import pytest
import torch

from foveate.coordinates import Grid
from foveate.models import guidance

NONE = [math.nan] * 4
GRID = Grid((5, 8), (48, 72), (4, 4))
IMAGE, PATCH = (480, 720), (64, 64)


def test_it_is_the_attention_that_misses_the_hints() -> None:
    log_attention = torch.randn(2, 5, 8, dtype=torch.float64).flatten(1).log_softmax(-1)
    log_attention = log_attention.view(2, 5, 8).requires_grad_()
    cells = torch.tensor([[2, 3], [4, 7]])
    centres = GRID.centre_level0(cells, IMAGE)
    boxes = torch.cat([centres - 9, centres + 9], -1)
    hints = torch.stack([boxes, torch.tensor([NONE, NONE], dtype=torch.float64)])
    found = guidance(log_attention, hints, GRID, IMAGE, PATCH)
    expected = -(log_attention[0, 2, 3].exp() + log_attention[0, 4, 7].exp()).log()
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found, log_attention)
    assert gradient.isfinite().all()
    assert gradient[0].count_nonzero() == 2


def test_where_nothing_is_known_it_is_nothing() -> None:
    log_attention = torch.randn(1, 5, 8).flatten(1).log_softmax(-1).view(1, 5, 8).requires_grad_()
    outside = [-500.0, -500.0, -480.0, -480.0]  # moved out of the picture
    found = guidance(log_attention, torch.tensor([[NONE, outside]]), GRID, IMAGE, PATCH)
    assert found.item() == pytest.approx(0, abs=1e-6)
    (gradient,) = torch.autograd.grad(found, log_attention)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("place", [(41.0, 41.0), (240.0, 300.0), (430.0, 670.0)])
def test_every_place_that_cells_cover_has_a_cell(place: tuple[float, float]) -> None:
    y, x = place
    box = torch.tensor([[[y - 5, x - 5, y + 5, x + 5]]])
    even = torch.full((1, 5, 8), -math.log(40))
    assert guidance(even, box, GRID, IMAGE, (8, 8)).item() > 1
