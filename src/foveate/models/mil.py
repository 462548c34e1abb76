"""Deep multiple-instance learning (Ilse, Tomczak & Welling 2018): look at every patch of a grid.

z = sum_k a_k f_k over all patches, with a = softmax(w^T tanh(V f_k)), or, gated, softmax(w^T
(tanh(V f_k) * sigmoid(U f_k))). It is the full model, at the full price.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foveate.coordinates import Grid
from foveate.images import Images, as_batch
from foveate.models.inputs import check_size, form_of
from foveate.models.jitter import Jitter
from foveate.types import Draw, Float, Prediction, Size

_AT_ONCE = 1024
"""Patches whose features are computed together where nothing is learnt."""


class MILAttention(nn.Module):
    """Scores features by themselves.

    Args:
        features: the length of the features.
        hidden: width of the layer between.
        gated: whether a second branch gates the first.
    """

    def __init__(self, features: int, hidden: int = 128, gated: bool = False) -> None:
        super().__init__()
        self.value = nn.Linear(features, hidden)
        self.gate = nn.Linear(features, hidden) if gated else None
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, features: Float[Tensor, "b n d"]) -> Float[Tensor, "b n"]:
        """The logit of each feature."""
        hidden = self.value(features).tanh()
        if self.gate is not None:
            hidden = hidden * self.gate(features).sigmoid()
        score: Tensor = self.score(hidden).squeeze(-1)
        return score


class DeepMIL(nn.Module):
    """Deep MIL over a regular grid of patches.

    The grid's cells cover the image evenly, with a patch centred on each; patches overlap or leave
    gaps as their size has it. The paper has 12x16 patches of 100x100 for a 960x1280 image.

    Args:
        attention: scores features, (b, n, d) -> (b, n).
        feature: maps patches (b * n, c, *patch_size) to vectors (b * n, d).
        head: maps z (b, d) to class scores.
        patch_size: height and width of the patches.
        grid: rows and columns of patches.
        jitter: bends patches in training, before `feature` sees them.

    Example:
        >>> from foveate.models import ConvFeature
        >>> model = DeepMIL(MILAttention(64), ConvFeature(1), nn.Linear(64, 2),
        ...                 patch_size=(20, 20), grid=(5, 6))
        >>> model(torch.rand(2, 1, 100, 120)).log_attention.shape
        torch.Size([2, 5, 6])
    """

    def __init__(
        self,
        attention: nn.Module,
        feature: nn.Module,
        head: nn.Module,
        *,
        patch_size: Size,
        grid: Size,
        jitter: Jitter | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feature = feature
        self.head = head
        self.patch_size = check_size("patch_size", patch_size)
        self.grid = check_size("grid", grid)
        self.jitter = jitter

    def cell_grid(self, log_attention: Float[Tensor, "b h w"]) -> Grid:
        """Where the cells of an attention map lie."""
        return Grid(self.grid, self.grid)

    def forward(self, images: Images, generator: torch.Generator | None = None) -> Prediction:
        """Classify a batch of images; every cell is drawn, and weighs as much as its attention.

        Args:
            images: see `AttentionSampling.forward`.
            generator: where the random numbers of jitter come from.
        """
        batch = as_batch(images)
        grid = Grid(self.grid, self.grid)
        index = torch.arange(
            self.grid[0] * self.grid[1], device=next(self.parameters()).device
        ).expand(len(batch), -1)
        yx_level0 = grid.patch_corners(grid.cell_of(index), batch.extents, self.patch_size)
        form = form_of(self, mixed=True)
        patches, inputs = batch.read_inputs(yx_level0, self.patch_size, form)

        inputs = inputs if self.jitter is None else self.jitter(inputs, generator)
        features = self._features(inputs).unflatten(0, yx_level0.shape[:2])
        logits = self.attention(features)
        log_attention = logits.to(features.dtype).log_softmax(-1)
        attention = log_attention.exp()
        z = (attention[..., None] * features).sum(1)
        draw = Draw(index, attention.detach())
        return Prediction(
            self.head(z), log_attention.unflatten(1, self.grid), draw, yx_level0, patches
        )

    def _features(self, inputs: Float[Tensor, "m c p q"]) -> Float[Tensor, "m d"]:
        if self.training or torch.is_grad_enabled():
            features: Tensor = self.feature(inputs)
            return features
        # A batch has tens of thousands of patches, and none knows of the others.
        return torch.cat([self.feature(some) for some in inputs.split(_AT_ONCE)])
