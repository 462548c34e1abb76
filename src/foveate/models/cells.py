"""Maps over the overview, brought to the cells of the attention."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from foveate.types import Float, Size


def pool_to(values: Float[Tensor, "b oh ow"], cells: Size) -> Float[Tensor, "b h w"]:
    """The largest value in each cell of a map, the cells covering all of it evenly.

    Where the map does not divide evenly, neighbouring cells share a pixel.
    """
    (height, width), (rows, columns) = values.shape[1:], cells
    if height % rows == 0 and width % columns == 0:
        return F.max_pool2d(values, (height // rows, width // columns))
    return F.adaptive_max_pool2d(values, cells)
