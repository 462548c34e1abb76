"""What a model made of one image, as plain values that are written and read back as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from foveate.errors import InputError
from foveate.types import Float, Prediction, Size


@dataclass(frozen=True)
class Patch:
    """A patch that was looked at.

    Attributes:
        yx_level0: its top-left corner (y, x) in full-resolution pixels; it may lie outside the
            image, where a patch shows 0.
        size: its height and width in full-resolution pixels.
        weight: what its feature counts for in the decision.
        attention: the attention mass of its cell.
    """

    yx_level0: tuple[int, int]
    size: Size
    weight: float
    attention: float


@dataclass(frozen=True)
class Record:
    """What a model made of one image.

    Attributes:
        path: the image, as it was named.
        image_size: its height and width in full-resolution pixels.
        probabilities: of each class.
        patches: what was looked at, the heaviest first; nothing for a model that does not attend.
        attention: the attention mass of each cell, which sums to 1; None likewise.
        border: the share of height and width, on each side, that no cell covers.
    """

    path: str
    image_size: Size
    probabilities: dict[str, float]
    patches: tuple[Patch, ...] = ()
    attention: Float[Tensor, "h w"] | None = field(default=None, repr=False)
    border: tuple[float, float] = (0.0, 0.0)

    @property
    def label(self) -> str:
        """The likeliest class."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON has it; of the attention, its size and its border."""
        cells = None if self.attention is None else list(self.attention.shape)
        return {
            "path": self.path,
            "image_size": list(self.image_size),
            "label": self.label,
            "probabilities": self.probabilities,
            "cells": cells,
            "border": list(self.border),
            "patches": [
                {
                    "yx_level0": list(patch.yx_level0),
                    "size": list(patch.size),
                    "weight": patch.weight,
                    "attention": patch.attention,
                }
                for patch in self.patches
            ],
        }


def record_of(
    path: str,
    image_size: Size,
    out: Prediction,
    row: int,
    classes: tuple[str, ...],
    border: tuple[float, float] = (0.0, 0.0),
) -> Record:
    """The record of one image of a batch.

    Args:
        path: what to call the image.
        image_size: its height and width.
        out: what a model made of the batch.
        row: which image of the batch.
        classes: the name of each class.
        border: the share of height and width, on each side, that no cell covers.

    Raises:
        InputError: for classes that do not fit the model.

    Example:
        >>> import torch
        >>> out = Prediction(logits=torch.tensor([[0.0, 2.0]]))
        >>> record_of("a.png", (600, 800), out, 0, ("cat", "dog")).label
        'dog'
    """
    if out.logits.shape[1] != len(classes):
        raise InputError(
            f"cannot name {out.logits.shape[1]} classes with {len(classes)} names; "
            "pass the classes of the model"
        )
    shares = out.logits[row].detach().double().softmax(-1).tolist()
    probabilities = dict(zip(classes, shares, strict=True))
    if out.log_attention is None or out.draw is None or out.yx_level0 is None:
        return Record(path, image_size, probabilities)
    attention = out.log_attention[row].detach().float().exp().cpu()
    return Record(
        path, image_size, probabilities, _patches_of(out, row, attention), attention, border
    )


def _patches_of(out: Prediction, row: int, attention: Float[Tensor, "h w"]) -> tuple[Patch, ...]:
    if out.draw is None or out.yx_level0 is None or out.patches is None:
        return ()
    size = (out.patches.shape[-2], out.patches.shape[-1])
    weight = out.draw.weight[row].detach().cpu()
    mass = attention.flatten()[out.draw.index[row].cpu()]
    corners = out.yx_level0[row].tolist()
    order = weight.argsort(descending=True, stable=True).tolist()
    return tuple(
        Patch((corners[i][0], corners[i][1]), size, weight[i].item(), mass[i].item()) for i in order
    )
