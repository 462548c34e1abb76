"""The small model and images that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from foveate import AttentionSampling, Sampler, read_patches
from foveate.coordinates import Grid
from foveate.models import Attention, ContrastPrior, ConvAttention, ConvFeature, LeNetFeature
from problems import Outcomes


def small_model(**options: Any) -> Any:
    defaults: dict[str, Any] = {
        "attention": Attention(ConvAttention(3), ContrastPrior(), smoothing=1e-4),
        "feature": ConvFeature(3, (4, 8), (3, 3), (2, 2), (1, 1)),
        "head": nn.Linear(8, 5),
        "patch_size": (16, 12),
        "n_patches": 6,
        "overview_size": (20, 15),
    }
    return AttentionSampling(**defaults | options)


def photographs(b: int = 4, height: int = 200, width: int = 150) -> Tensor:
    return torch.randint(0, 256, (b, 3, height, width), dtype=torch.uint8)


class FixedAttention(nn.Module):
    """Logits that were decided beforehand, with a weight so that gradients can be taken."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, overview: Tensor) -> Tensor:
        return self.logits.expand(len(overview), *self.logits.shape)


def enumerable_model(
    sampler: Sampler, outcomes_of: Callable[[Tensor, int], Outcomes]
) -> tuple[Any, Tensor, Outcomes]:
    """A float64 model of six cells, an image, and all that three draws of it can come to."""
    logits = torch.tensor([[0.3, -0.5, 2.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    model = small_model(
        attention=FixedAttention(logits),
        feature=LeNetFeature(3, channels=4),
        head=nn.Linear(4, 2),
        patch_size=(16, 16),
        n_patches=3,
        sampler=sampler,
    ).double()
    outcomes = outcomes_of(logits.flatten().softmax(0).view(2, 3), 3)
    return model, torch.rand(1, 3, 60, 90, dtype=torch.float64), outcomes


def check_full_model(model: Any, image: Tensor, mean: Tensor) -> None:
    """The mean over all draws, and its gradient in every weight, are those of the full model."""
    grid = Grid((2, 3), (20, 15))
    corners = grid.patch_corner(grid.cell_of(torch.arange(6)), (60, 90), (16, 16))
    features = model.feature(read_patches(image, corners[None], (16, 16))[0])
    full = model.head(model.attention(image)[0].flatten().softmax(0) @ features)
    torch.testing.assert_close(mean, full, rtol=0, atol=1e-10)
    for output in (0, 1):
        got = torch.autograd.grad(mean[output], list(model.parameters()), retain_graph=True)
        expected = torch.autograd.grad(full[output], list(model.parameters()), retain_graph=True)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)
