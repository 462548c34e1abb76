"""What a part of an image adds to its overview, so that it can be added up part by part.

The filter is that of `resample`. Parts come in any order, each once, and none has to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from foveate.images.memory.resample import span_weights
from foveate.types import Float, Size, UInt8

_BLOCK = 256
"""The side of what is held as floats at one time. Products of so few numbers are computed by the
thread that asks for them, where larger ones would wait for other threads."""


@dataclass(frozen=True)
class Shrinking:
    """From an image to its overview; it may be used by several threads.

    Attributes:
        whole: height and width of the image that comes in parts.
        size: height and width of the overview.
        extent: the true height and width of the image, where its last pixels are only partly of it.
    """

    whole: Size
    size: Size
    extent: tuple[float, float]
    # All parts in a row or column share their weights.
    _weights: dict[tuple[int, int, int], tuple[slice, np.ndarray]] = field(default_factory=dict)

    def parts(
        self, pixels: UInt8[np.ndarray, "h w c"], y: int = 0, x: int = 0
    ) -> Iterator[tuple[slice, slice, Float[np.ndarray, "i j c"]]]:
        """What pixels whose corner is at (y, x) add, and to which rows and columns.

        What reaches beyond the image is left out.
        """
        bottom = min(y + pixels.shape[0], self.whole[0])
        right = min(x + pixels.shape[1], self.whole[1])
        for top in range(y, bottom, _BLOCK):
            stop = min(top + _BLOCK, bottom)
            i, weight_y = self._span(0, top, stop)
            rows = pixels[top - y : stop - y]
            for left in range(x, right, _BLOCK):
                end = min(left + _BLOCK, right)
                j, weight_x = self._span(1, left, end)
                block = rows[:, left - x : end - x].astype(np.float32)
                narrow = np.matmul(weight_x, block)  # (rows, j, c)
                flat = weight_y @ narrow.reshape(len(block), -1)
                yield i, j, flat.reshape(-1, *narrow.shape[1:])

    def _span(self, axis: int, start: int, stop: int) -> tuple[slice, np.ndarray]:
        key = (axis, start, stop)
        if key not in self._weights:
            old, new, extent = self.whole[axis], self.size[axis], self.extent[axis]
            reached, weights = span_weights(slice(start, stop), old, new, torch.empty(0), extent)
            self._weights[key] = reached, weights.numpy()
        return self._weights[key]
