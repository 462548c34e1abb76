"""The small model and images that several tests use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foveate import AttentionSampling
from foveate.models import Attention, ContrastPrior, ConvAttention, ConvFeature


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
