"""A prior for attention: look where there is something to see.

Attention that starts uniform over tens of thousands of cells draws nothing but background and
learns nothing for a long time. Adding β log(local contrast / its maximum + floor) to the logits,
with β learnable, removes that plateau; a β that shrinks to 0 gives the network the last word.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.kernels import kernels_on
from foveate.models.cells import pool_to
from foveate.types import Float, Size


class ContrastPrior(nn.Module):
    """Log-contrast of the overview around each cell, times a learnable strength.

    Contrast is the range of the colours in a square window; a cell of several pixels has that of
    its most contrasted one.

    Args:
        strength: where β starts.
        window: width of the window in overview pixels, odd.
        floor: what contrast 0 counts as, of the largest in the image.
    """

    def __init__(self, strength: float = 1.0, window: int = 3, floor: float = 1e-3) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(strength))
        self.window = window
        self.floor = floor

    def forward(
        self, overview: Float[Tensor, "b c oh ow"], cells: Size, margin: Size
    ) -> Float[Tensor, "b h w"]:
        """What to add to the logits of the cells."""
        return self.strength * self.log_contrast(overview, cells, margin)

    def log_contrast(
        self, overview: Float[Tensor, "b c oh ow"], cells: Size, margin: Size
    ) -> Float[Tensor, "b h w"]:
        """The logarithm of each cell's contrast, of the largest in the image."""
        contrast = local_contrast(overview, self.window)
        height, width = contrast.shape[1:]
        inside = contrast[:, margin[0] : height - margin[0], margin[1] : width - margin[1]]
        inside = pool_to(inside, cells)
        largest = inside.amax((1, 2), keepdim=True).clamp(min=torch.finfo(inside.dtype).tiny)
        return (inside / largest + self.floor).log()


def local_contrast(overview: Float[Tensor, "b c oh ow"], window: int) -> Float[Tensor, "b oh ow"]:
    """Brightest minus darkest in a square window around each pixel, the mean over the channels.

    Example:
        >>> edge = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0]).expand(1, 1, 3, 5)
        >>> local_contrast(edge, 3)[0, 1]
        tensor([0., 0., 1., 1., 0.])
    """
    values = overview.detach()
    if kernels_on(values.device) and values.dtype == torch.float32 and values.shape[1] <= 4:
        from foveate.models.contrast_kernel import contrast_on_gpu

        with torch.cuda.device_of(values):
            return contrast_on_gpu(values, window)
    brightest = _over_window(torch.maximum, values, window // 2)
    darkest = _over_window(torch.minimum, values, window // 2)
    return (brightest - darkest).mean(1)


def _over_window(
    choose: Callable[[Tensor, Tensor], Tensor], values: Float[Tensor, "b c oh ow"], reach: int
) -> Float[Tensor, "b c oh ow"]:
    """The extreme of each pixel's window, one axis after the other: max-pooling is far slower."""
    sides = (reach,) * 4
    padded = F.pad(values, sides, mode="replicate")  # a pixel twice does not change an extreme
    for axis in (2, 3):
        length = values.shape[axis]
        shifted = (padded.narrow(axis, step, length) for step in range(2 * reach + 1))
        padded = functools.reduce(choose, shifted)
    return padded
