"""How far attention is from where it is known that it should be, for images that were made."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.coordinates import Grid
from foveate.types import Float, Size


def guidance(
    log_attention: Float[Tensor, "b h w"],
    hints: Float[Tensor, "b m 4"],
    grid: Grid,
    image_size: Size,
    patch_size: Size,
) -> Float[Tensor, ""]:
    """Minus the logarithm of the attention on the hints, the mean over the images that have any.

    A cell is on a hint if the hint's centre is in the middle half of its patch, or in the cell.

    Args:
        log_attention: of each cell.
        hints: boxes (y0, x0, y1, x1) at level 0, NaN where there is none.
        grid: where the cells lie.
        image_size: height and width of the images.
        patch_size: height and width of the patches.

    Example:
        >>> even = torch.full((1, 4, 4), 1 / 16).log()
        >>> box = torch.tensor([[[20.0, 20.0, 30.0, 30.0]]])
        >>> grid = Grid((4, 4), (40, 40))
        >>> guidance(even, box, grid, (80, 80), (10, 10)).exp().round().item()
        16.0
    """
    near = torch.ones_like(log_attention, dtype=torch.bool)[:, None]
    for axis in (0, 1):
        cells, size = grid.cells[axis], image_size[axis]
        row = torch.arange(cells, device=log_attention.device)[:, None].expand(-1, 2)
        centre = grid.centre_level0(row, image_size)[:, axis].to(hints.dtype)
        sought = (hints[..., axis] + hints[..., axis + 2]) / 2
        across = size * (1 - 2 * grid.margin[axis] / grid.overview_size[axis]) / cells
        reach = max(patch_size[axis] / 4, across / 2)
        close = (centre - sought[..., None]).abs() <= reach
        near = near & (close[..., :, None] if axis == 0 else close[..., None, :])
    on = near.any(1)
    known = on.any(2).any(1)
    # Where nothing is known, all attention is where it should be.
    on = on | ~known[:, None, None]
    missed = -log_attention.masked_fill(~on, -torch.inf).flatten(1).logsumexp(-1)
    return missed.sum() / known.sum().clamp(min=1)
