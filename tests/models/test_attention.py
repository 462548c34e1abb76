from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from foveate import entropy
from foveate.coordinates import Grid
from foveate.errors import InputError
from foveate.models import (
    Attention,
    ContrastPrior,
    ConvAttention,
    PooledAttention,
    UniformAttention,
)
from foveate.models.attention import log_normalise, margin_of


def test_the_paper_s_sizes() -> None:
    convolutions = [layer for layer in ConvAttention(1).modules() if isinstance(layer, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [(1, 8), (8, 8), (8, 1)]
    assert ConvAttention(1)(torch.rand(2, 1, 18, 20)).shape == (2, 18, 20)

    pooled = PooledAttention(3)
    convolutions = [layer for layer in pooled.modules() if isinstance(layer, nn.Conv2d)]
    assert [c.out_channels for c in convolutions] == [8, 16, 32, 1]
    assert pooled.margin == 4
    assert pooled(torch.rand(2, 3, 288, 384)).shape == (2, 35, 47)


@pytest.mark.parametrize("size", [(288, 384), (290, 391), (16, 16), (17, 23)])
def test_a_bright_spot_is_seen_by_the_cell_that_covers_it(size: tuple[int, int]) -> None:
    network = PooledAttention(1, channels=(1, 1, 1))
    for layer in network.layers:  # each convolution passes its centre pixel on
        assert isinstance(layer, nn.Conv2d)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias) if layer.bias is not None else None
        layer.weight.data[:, :, 1, 1] = 1.0
    for y, x in [(4, 4), (size[0] - 5, size[1] - 5), (size[0] // 2, size[1] // 3)]:
        overview = torch.zeros(1, 1, *size)
        overview[0, 0, y, x] = 1.0
        logits = network(overview)
        grid = Grid((logits.shape[1], logits.shape[2]), size, margin_of(network))
        yx_cell = grid.cell_at_overview(torch.tensor([y + 0.5, x + 0.5], dtype=torch.float64))
        assert logits[0, yx_cell[0], yx_cell[1]] == 1.0


def test_smoothing_leaves_every_cell_possible() -> None:
    attention = Attention(ConvAttention(1), smoothing=1e-3)
    for parameter in attention.parameters():
        nn.init.constant_(parameter, 10.0)
    log_attention = attention(100 * torch.rand(2, 1, 12, 12))
    assert log_attention.exp().min() >= 1e-3 / 144 * 0.999
    torch.testing.assert_close(log_attention.exp().sum((1, 2)), torch.ones(2))


def test_contrast_prior_looks_at_the_edge_and_can_be_unlearned() -> None:
    overview = torch.zeros(1, 1, 40, 40)
    overview[..., 10:20, 10:20] = 0.3
    prior = ContrastPrior()
    logits = prior(overview, (40, 40), (0, 0))
    assert logits[0, 10, 10].item() == pytest.approx(math.log(1.001), abs=1e-6)
    assert logits[0, 30, 30].item() == pytest.approx(math.log(1e-3), abs=1e-4)
    attention = Attention(UniformAttention((40, 40)), prior)
    assert entropy(attention(overview)) < math.log(200)
    nn.init.zeros_(prior.strength)
    assert entropy(attention(overview)).item() == pytest.approx(math.log(1600), rel=1e-5)


def test_curious_attention_looks_at_contrast_in_training_only() -> None:
    overview = torch.rand(2, 1, 40, 40)
    network, prior = ConvAttention(1), ContrastPrior(strength=0.5)
    own = Attention(network, prior)(overview).exp()
    curious = Attention(network, prior, curiosity=0.25)
    contrast = prior.log_contrast(overview, (40, 40), (0, 0)).flatten(1).softmax(-1)
    expected = 0.75 * own + 0.25 * contrast.view_as(own)
    torch.testing.assert_close(curious(overview).exp(), expected)
    torch.testing.assert_close(curious.eval()(overview).exp(), own)
    with pytest.raises(InputError, match="there is none; leave it at 0 or add a ContrastPrior"):
        Attention(network, curiosity=0.25)
    with pytest.raises(InputError, match=r"curiosity must be in \[0, 1\), but is 1.5"):
        Attention(network, prior, curiosity=1.5)


def test_contrast_prior_lines_up_with_margins_and_pools() -> None:
    network = PooledAttention(1)
    attention = Attention(network, ContrastPrior())
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    for y, x in [(10, 100), (37, 4), (50, 50)]:
        overview = torch.zeros(1, 1, 68, 132)
        overview[0, 0, y, x] = 1.0
        log_attention = attention(overview)
        grid = Grid((log_attention.shape[1], log_attention.shape[2]), (68, 132), (4, 4))
        expected = grid.cell_at_overview(torch.tensor([y + 0.5, x + 0.5], dtype=torch.float64))
        assert log_attention[0, expected[0], expected[1]] == log_attention.max()


def test_a_blank_overview_is_looked_at_evenly() -> None:
    log_attention = Attention(UniformAttention((5, 6)), ContrastPrior())(torch.ones(2, 3, 5, 6))
    torch.testing.assert_close(log_attention.exp(), torch.full((2, 5, 6), 1 / 30))


def test_normalising_twice_changes_nothing() -> None:
    once = log_normalise(torch.randn(2, 1, 4, 5).half())
    assert once.dtype == torch.float32
    assert once.shape == (2, 4, 5)
    torch.testing.assert_close(log_normalise(once), once)


def test_bad_attention_networks_say_what_to_do() -> None:
    with pytest.raises(InputError, match=r"must give \(b, h, w\) or \(b, 1, h, w\) logits"):
        log_normalise(torch.zeros(2, 3, 4, 5))
    with pytest.raises(InputError, match=r"overview of \(15, 40\) leaves no cell after 4"):
        PooledAttention(1)(torch.zeros(1, 1, 15, 40))
    with pytest.raises(InputError, match=r"smoothing must be in \[0, 1\), but is 1.5"):
        Attention(ConvAttention(1), smoothing=1.5)
