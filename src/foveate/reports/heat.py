"""Attention as colours: from dark and clear where there is little to bright where there is much."""

from __future__ import annotations

import numpy as np
import torch.nn.functional as F
from matplotlib import colormaps
from torch import Tensor

from foveate.types import Float, Size, UInt8

_CLEAR, _OPAQUE = 0.35, 0.85
"""How much of the picture below is covered where attention is least, and where it is largest."""


def heat_colours(attention: Float[Tensor, "h w"]) -> UInt8[np.ndarray, "h w 4"]:
    """The colour of each cell, red, green, blue and opacity.

    The root of the attention relative to its largest, so that what is a hundredth is still seen.
    """
    values = attention.detach().float().cpu()
    strength = (values / values.max().clamp(min=1e-30)).sqrt().numpy()
    colours: np.ndarray = colormaps["inferno"](strength)
    colours[..., 3] = _CLEAR + (_OPAQUE - _CLEAR) * strength
    return np.round(255 * colours).astype(np.uint8)


def heat_layer(
    attention: Float[Tensor, "h w"], view: Size, border: tuple[float, float] = (0.0, 0.0)
) -> UInt8[np.ndarray, "H W 4"]:
    """A layer to lay over a view of the image; each pixel has the colour of the cell it lies in.

    Args:
        attention: the attention mass of each cell.
        view: height and width of the view.
        border: the share of height and width, on each side, that no cell covers; it stays clear.
    """
    # A cell smaller than a pixel of the view must not be lost.
    fewer = (min(attention.shape[0], view[0]), min(attention.shape[1], view[1]))
    if fewer != tuple(attention.shape):
        attention = F.adaptive_max_pool2d(attention.detach().float()[None], fewer)[0]
    colours = heat_colours(attention)
    rows, columns = (_cell_of_pixels(view[axis], border[axis], fewer[axis]) for axis in (0, 1))
    layer: np.ndarray = colours[rows.clip(0, fewer[0] - 1)][:, columns.clip(0, fewer[1] - 1)].copy()
    layer[(rows < 0) | (rows >= fewer[0])] = 0
    layer[:, (columns < 0) | (columns >= fewer[1])] = 0
    return layer


def peak_of(attention: Float[Tensor, "h w"]) -> str:
    """How much larger than the mean the largest attention is, in words.

    Example:
        >>> import torch
        >>> peak_of(torch.tensor([[0.7, 0.1], [0.1, 0.1]]))
        'its peak 2.8 x its mean'
    """
    ratio = (attention.max() / attention.mean()).item()
    return (
        f"its peak {ratio:,.0f} x its mean" if ratio >= 10 else f"its peak {ratio:.1f} x its mean"
    )


def _cell_of_pixels(pixels: int, border: float, cells: int) -> np.ndarray:
    """The cell that the centre of each pixel along an axis lies in; too low or high outside."""
    centre = (np.arange(pixels) + 0.5) / pixels
    return np.floor((centre - border) / (1 - 2 * border) * cells).astype(np.int64)
