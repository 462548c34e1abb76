"""Where a model looks, against the truth that it was never told.

The truth is boxes around what decides an image's label: digits, epithelial cells, signs. A patch is
on the truth if it shows the centre of a box; a cell is if the patch on it would.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.datasets import ImageDataset
from foveate.models import AttentionSampling, DeepMIL
from foveate.training import Classifier
from foveate.types import Bool, Float64, Int64, Size


@dataclass(frozen=True)
class Pointing:
    """Means over the images whose truth is known and not empty.

    Attributes:
        images: how many there are.
        mass: how much of the attention lies on the truth.
        chance: how much would if it were spread evenly.
        patches: how many of the patches that were drawn are on the truth, as a share.
        found: in how many images one of them is.
        first: in how many images the cell of most attention is on the truth: pointing accuracy.
        objects: how many of an image's boxes a drawn patch is on, as a share.
    """

    images: int
    mass: float
    chance: float
    patches: float
    found: float
    first: float
    objects: float


@torch.no_grad()
def measure_pointing(
    classifier: Classifier, data: ImageDataset, batch_size: int = 16
) -> Pointing | None:
    """Compare where a model looks with the truth; None where there is nothing to compare.

    Args:
        classifier: a trained model; draws are made without chance. Deep MIL draws every patch: of
            those, as many as weigh most count as drawn as attention sampling would draw.
        data: the images.
        batch_size: how many to look at together.
    """
    model = classifier.model
    if not isinstance(model, AttentionSampling | DeepMIL):
        return None
    known = [index for index in range(len(data)) if len(data.truth(index))]
    if not known:
        return None
    classifier.eval()
    device = next(classifier.parameters()).device
    drawn = classifier.settings.n_patches
    rows: list[list[float]] = []
    for start in range(0, len(known), batch_size):
        some = known[start : start + batch_size]
        images = data.gather(some).to(device).images
        out = classifier(images)
        assert out.log_attention is not None
        assert out.draw is not None
        assert out.yx_level0 is not None
        corners = cell_corners(model, out.log_attention, images.sizes)
        heaviest = out.draw.weight.topk(min(drawn, out.draw.weight.shape[1])).indices
        for row, index in enumerate(some):
            attention = out.log_attention[row].flatten().exp().double().cpu()
            truth = data.truth(index)
            on_cells = on_truth(corners[row], truth, model.patch_size)
            patches = out.yx_level0[row, heaviest[row]].cpu()
            on_patches = on_truth(patches, truth, model.patch_size)
            cells = on_cells.any(1)
            rows.append(
                [
                    float(attention[cells].sum()),
                    float(cells.double().mean()),
                    float(on_patches.any(1).double().mean()),
                    float(on_patches.any()),
                    float(cells[attention.argmax()]),
                    float(on_patches.any(0).double().mean()),
                ]
            )
    means = torch.tensor(rows, dtype=torch.float64).mean(0).tolist()
    return Pointing(len(rows), *means)


def cell_corners(
    model: AttentionSampling | DeepMIL, log_attention: Tensor, sizes: list[Size]
) -> Int64[Tensor, "b k 2"]:
    """The level-0 corner of the patch on every cell, on the host."""
    grid = model.cell_grid(log_attention)
    index = torch.arange(log_attention[0].numel()).expand(len(sizes), -1)
    return grid.patch_corners(grid.cell_of(index), sizes, model.patch_size)


def on_truth(
    corners: Int64[Tensor, "n 2"], truth: Float64[Tensor, "m 4"], patch_size: Size
) -> Bool[Tensor, "n m"]:
    """Whether each patch shows the centre of each box.

    Example:
        >>> boxes = torch.tensor([[10.0, 10, 20, 20]], dtype=torch.float64)
        >>> on_truth(torch.tensor([[0, 0], [16, 0]]), boxes, (32, 32)).tolist()
        [[True], [False]]
    """
    centre = (truth[:, :2] + truth[:, 2:]) / 2
    offset = centre[None] - corners[:, None]
    size = torch.tensor(patch_size, dtype=torch.float64)
    return ((offset >= 0) & (offset < size)).all(-1)
