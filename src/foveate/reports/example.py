"""One image as a page shows it: what it is, what the model said, and where it looked."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from foveate.images import ImageBatch
from foveate.reports.heat import heat_colours, peak_of
from foveate.reports.pictures import SHOWN, Number, shown, view_size
from foveate.reports.record import record_of
from foveate.types import Float, Prediction, UInt8

_LEAST = 0.012
"""The least side of an outline, as a share of the image's: in huge images a patch is a point."""


@dataclass(frozen=True)
class Outline:
    """A rectangle over an image, in percent of its width and height."""

    x: float
    y: float
    width: float
    height: float
    name: str = ""


@dataclass(frozen=True)
class Example:
    """An image of a page; all that it shows is in itself.

    Attributes:
        name: what to call the image.
        size: its height and width in pixels.
        true: its class.
        said: the likeliest class by the model.
        likely: the likeliest classes and their probabilities.
        picture: the image, as the address of its own data.
        heat: its attention likewise, which lies over the middle of the picture; empty without.
        heat_place: where the attention lies.
        peak: how peaked it is, in words.
        outlines: the patches that were drawn.
        truth: what decides the label, where it is known.
        patches: the heaviest patches as the addresses of their data, each with its weight.
    """

    name: str
    size: tuple[int, int]
    true: str
    said: str
    likely: list[tuple[str, float]]
    picture: str
    heat: str
    heat_place: Outline
    peak: str
    outlines: list[Outline]
    truth: list[Outline]
    patches: list[tuple[str, float]]

    @property
    def right(self) -> bool:
        """Whether the model was right."""
        return self.true == self.said


def example_of(
    images: ImageBatch,
    out: Prediction,
    row: int,
    classes: tuple[str, ...],
    true: str,
    name: str,
    truth: Float[Tensor, "m 4"] | None = None,
    border: tuple[float, float] = (0.0, 0.0),
) -> Example:
    """An image of a batch as a page shows it.

    Args:
        images: the batch.
        out: what a model made of it.
        row: which image.
        classes: the name of each class.
        true: the class of this image.
        name: what to call it.
        truth: boxes (y0, x0, y1, x1) at level 0 around what decides the label.
        border: the share of height and width, on each side, that no cell covers.
    """
    size = images.sizes[row]
    record = record_of(name, size, out, row, classes, border)
    by_weight = [] if out.draw is None else out.draw.weight[row].argsort(descending=True).tolist()
    patches = [] if out.patches is None else [out.patches[row, i] for i in by_weight[:SHOWN]]
    boxes = [
        (*p.yx_level0, p.yx_level0[0] + p.size[0], p.yx_level0[1] + p.size[1])
        for p in record.patches[:SHOWN]
    ]
    likely = sorted(record.probabilities.items(), key=lambda item: -item[1])
    attention = record.attention
    return Example(
        name=name,
        size=size,
        true=true,
        said=record.label,
        likely=likely[:3],
        picture=data_address(shown(images.overviews(view_size(size))[row])),
        heat="" if attention is None else data_address(heat_colours(attention), exact=True),
        heat_place=_outline((border[0], border[1], 1 - border[0], 1 - border[1]), (1, 1)),
        peak="" if attention is None else peak_of(attention),
        outlines=[_outline(box, size, str(rank)) for rank, box in enumerate(boxes, start=1)],
        truth=[] if truth is None else [_outline(tuple(box), size) for box in truth.tolist()],
        patches=[
            (data_address(shown(patch)), record.patches[rank].weight)
            for rank, patch in enumerate(patches)
        ],
    )


def data_address(pixels: UInt8[np.ndarray, "h w c"], exact: bool = False) -> str:
    """Pixels as an address that holds them, to stand in a page for a file.

    Args:
        pixels: colours, perhaps with an opacity.
        exact: whether every pixel must stay as it is.
    """
    from PIL import Image

    options: dict[str, Any] = {"lossless": True} if exact else {"quality": 88}
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", **options)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def _outline(box: tuple[Number, ...], size: tuple[int, int], name: str = "") -> Outline:
    y0, x0, y1, x1 = box[0] / size[0], box[1] / size[1], box[2] / size[0], box[3] / size[1]
    height, width = max(y1 - y0, _LEAST), max(x1 - x0, _LEAST)
    y, x = (y0 + y1 - height) / 2, (x0 + x1 - width) / 2
    x, y, width, height = (round(100 * share, 3) for share in (x, y, width, height))
    return Outline(x, y, width, height, name)
