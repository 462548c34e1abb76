from __future__ import annotations

import numpy as np
import torch

from foveate.reports.heat import heat_colours, heat_layer


def test_each_pixel_has_the_colour_of_its_cell() -> None:
    attention = torch.rand(3, 4)
    layer = heat_layer(attention, (30, 40))
    assert np.array_equal(layer, heat_colours(attention).repeat(10, 0).repeat(10, 1))


def test_what_no_cell_covers_stays_clear() -> None:
    layer = heat_layer(torch.ones(3, 4), (50, 60), border=(0.1, 0.05))
    clear = layer[..., 3] == 0
    assert clear[:5].all()
    assert clear[-5:].all()
    assert clear[:, :3].all()
    assert clear[:, -3:].all()
    assert not clear[5:-5, 3:-3].any()


def test_a_cell_smaller_than_a_pixel_is_not_lost() -> None:
    attention = torch.full((1000, 1000), 1e-9)
    attention[577, 123] = 1.0
    layer = heat_layer(attention, (100, 100))
    y, x = divmod(int(layer.astype(int).sum(-1).argmax()), 100)
    assert (y, x) == (57, 12)


def test_more_attention_is_brighter_and_less_clear() -> None:
    colours = heat_colours(torch.tensor([[0.0, 0.01, 0.1, 1.0]])).astype(int)[0]
    assert (np.diff(colours[:, :3].sum(-1)) > 0).all()
    assert (np.diff(colours[:, 3]) > 0).all()
