"""Images of one size that lie together in memory, and batches that only say which of them."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images.batch import ImageBatch
from foveate.images.gather import gather_patches
from foveate.images.kept import KeptOverviews
from foveate.images.resample import resample
from foveate.types import Int64, Num, Size


class ImagePool:
    """Images of one size in one tensor, with a copy on each device that asks for it.

    Args:
        pixels: the images.
    """

    def __init__(self, pixels: Num[Tensor, "N c H W"]) -> None:
        self.kept = KeptOverviews(len(pixels))
        self._pixels = {pixels.device: pixels}

    def on(self, device: torch.device) -> Num[Tensor, "N c H W"]:
        """The images on a device."""
        if device not in self._pixels:
            self._pixels[device] = next(iter(self._pixels.values())).to(device)
        return self._pixels[device]

    @property
    def size(self) -> Size:
        """(height, width) of every image."""
        height, width = next(iter(self._pixels.values())).shape[2:]
        return height, width


class PooledBatch(ImageBatch):
    """Some images of a pool; none of them is copied.

    Args:
        pool: the images.
        where: which of them, on the host.
        index: the same, where the images are to be looked at.
    """

    def __init__(
        self, pool: ImagePool, where: Int64[Tensor, " b"], index: Int64[Tensor, " b"]
    ) -> None:
        self.pool = pool
        self.where = where
        self.index = index

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [self.pool.size] * len(self.index)

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`."""
        device = self.index.device
        pixels = self.pool.on(device)
        if size == self.pool.size:
            return pixels[self.index]
        return self.pool.kept.get(
            self.where, size, device, lambda: resample(pixels[self.index], size)
        )

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: which images."""
        return (self.index,)

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        (index,) = sources
        pixels = self.pool.on(index.device)
        return gather_patches(pixels, yx_level0.to(pixels.device), size, index)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PooledBatch:
        """See `ImageBatch.to`."""
        index = self.where.to(device, non_blocking=non_blocking)
        return PooledBatch(self.pool, self.where, index)
