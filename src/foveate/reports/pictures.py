"""Where a model looked: the overview, its attention, the patches that were drawn, and the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from foveate.errors import InputError
from foveate.images import ImageBatch
from foveate.types import Prediction, Size

_VIEW = 600
"""The longer side of an overview in a picture, in pixels."""
_PATCHES = 12
"""The most patches shown beside it."""


def draw_attention(
    images: ImageBatch,
    out: Prediction,
    row: int,
    path: Path,
    title: str = "",
    truth: Tensor | None = None,
    border: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Draw one image of a batch: what it shows, where the attention lies, and the patches read.

    Args:
        images: the batch.
        out: what a model made of it.
        row: which image.
        path: where to write the picture.
        title: what to write above it.
        truth: boxes (y0, x0, y1, x1) at level 0 around what decides the label.
        border: the share of height and width, on each side, that no cell covers.
    """
    if out.log_attention is None or out.draw is None:
        raise InputError("cannot draw the attention of a model that has none, such as a CNN")
    if out.patches is None or out.yx_level0 is None:
        raise InputError("cannot draw a prediction without its patches")
    height, width = images.sizes[row]
    view = _fit((height, width))
    overview = _picture(images.overviews(view)[row])
    attention = out.log_attention[row].detach().exp().cpu().numpy()
    extent = (0, width, height, 0)

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    _show(left, overview, extent)
    left.set_title(title or "image")
    _show(middle, overview, extent)
    top, left_edge = border[0] * height, border[1] * width
    middle.imshow(
        np.sqrt(attention / attention.max()),
        extent=(left_edge, width - left_edge, height - top, top),
        cmap="inferno",
        alpha=0.65,
        vmin=0,
    )
    middle.set_title("attention, and the patches drawn")
    p, q = out.patches.shape[-2:]
    for y, x in out.yx_level0[row].tolist():
        middle.add_patch(Rectangle((x, y), q, p, fill=False, edgecolor="deepskyblue", lw=0.9))
    for y0, x0, y1, x1 in [] if truth is None else truth.tolist():
        box = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="limegreen", lw=0.9)
        left.add_patch(box)
    for axis in (left, middle):
        axis.set(xlim=(0, width), ylim=(height, 0))

    order = out.draw.weight[row].argsort(descending=True)[:_PATCHES].tolist()
    _mosaic(right, out.patches[row], out.draw.weight[row], order)
    figure.savefig(path, dpi=110)


def _fit(size: Size) -> Size:
    scale = min(1.0, _VIEW / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _picture(pixels: Tensor) -> Any:
    """(c, h, w) pixels as what matplotlib shows."""
    colours = pixels.detach().cpu()
    colours = colours.float() / 255 if colours.dtype == torch.uint8 else colours.float()
    colours = colours[:3] if len(colours) >= 3 else colours[:1].expand(3, -1, -1)
    return colours.clamp(0, 1).permute(1, 2, 0).numpy()


def _show(axis: Any, picture: Any, extent: tuple[int, int, int, int]) -> None:
    axis.imshow(picture, extent=extent, interpolation="antialiased")
    axis.set(xticks=[], yticks=[])


def _mosaic(axis: Any, patches: Tensor, weight: Tensor, order: list[int]) -> None:
    """The patches in rows of four, by falling weight."""
    axis.set_title("patches by weight")
    axis.set_axis_off()
    for place, number in enumerate(order):
        inset = axis.inset_axes((place % 4 / 4, 1 - (place // 4 + 1) / 3, 0.24, 0.3))
        inset.imshow(_picture(patches[number]))
        inset.set(xticks=[], yticks=[])
        inset.set_xlabel(f"{weight[number].item():.3f}", fontsize=7, labelpad=1)
