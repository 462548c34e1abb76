"""Images that lie together in memory, and batches that only say which of them."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images.batches.stacked import StackedBatch
from foveate.images.memory.device_reads import kernels_for
from foveate.images.memory.kept import KeptOverviews
from foveate.images.memory.resample import resample
from foveate.images.memory.stack import Stack
from foveate.types import Extents, Int64, Num, Size

_SHARE = 0.5
"""Of a GPU's free memory that a pool may take; a larger one stays on the host."""


class ImagePool:
    """Images in one tensor, with a copy on each device that asks for it.

    A pool that would fill a GPU is pinned in host memory instead, where the GPU reads patches in
    place.

    Args:
        pixels: the images. Those that are smaller lie in the first rows and columns, and the rest
            is 0.
        resident: whether they are copied to a GPU; None where at most half of its free memory is
            needed.
        sizes: height and width of each image, if they are of different sizes.

    Attributes:
        square: whether all of them are.
    """

    def __init__(
        self,
        pixels: Num[Tensor, "N c H W"],
        resident: bool | None = None,
        sizes: list[Size] | None = None,
    ) -> None:
        self.kept = KeptOverviews(len(pixels))
        self.resident = resident
        self.sizes = sizes
        known = [pixels.shape[2:]] if sizes is None else sizes
        self.square = all(height == width for height, width in known)
        self._pixels = {pixels.device: pixels}
        self._extent: dict[torch.device, Tensor] = {}

    def on(self, device: torch.device) -> Num[Tensor, "N c H W"]:
        """The images for a device; they may be in pinned host memory."""
        if device not in self._pixels:
            self._pixels[device] = self._brought(device)
        return self._pixels[device]

    def extent(self, device: torch.device) -> Int64[Tensor, "N 2"] | None:
        """(height, width) of each image, on a device; None where they are of one size."""
        if self.sizes is None:
            return None
        if device not in self._extent:
            self._extent[device] = torch.tensor(self.sizes, device=device)
        return self._extent[device]

    def image(self, number: int) -> Num[Tensor, "c H W"]:
        """One of the images, on the host, not copied."""
        height, width = self.size if self.sizes is None else self.sizes[number]
        return self.on(torch.device("cpu"))[number, :, :height, :width]

    def make_overviews(
        self, index: Int64[Tensor, " b"], size: Size, device: torch.device
    ) -> Num[Tensor, "b c h w"]:
        """Overviews of some of the images, for a device."""
        pixels = self.on(device)
        if self.sizes is None:
            return resample(Stack(pixels, index).whole().to(device), size)
        # Each by itself: its size decides what a pixel of its overview is made of.
        sized = [(number, *self.sizes[number]) for number in index.tolist()]
        return torch.cat(
            [
                resample(pixels[number, :, :height, :width].to(device)[None], size)
                for number, height, width in sized
            ]
        )

    @property
    def size(self) -> Size:
        """(height, width) of every image, or of room for the largest."""
        height, width = next(iter(self._pixels.values())).shape[2:]
        return height, width

    def _brought(self, device: torch.device) -> Num[Tensor, "N c H W"]:
        pixels = next(iter(self._pixels.values()))
        if device.type != "cuda" or self._fits(pixels, device):
            return pixels.to(device)
        pinned = pixels.pin_memory()
        if not kernels_for(pinned, device):
            return pixels.to(device)
        self._pixels[pixels.device] = pinned
        return pinned

    def _fits(self, pixels: Tensor, device: torch.device) -> bool:
        if self.resident is not None:
            return self.resident
        return pixels.nbytes <= _SHARE * torch.cuda.mem_get_info(device)[0]


class PooledBatch(StackedBatch):
    """Some images of a pool; none of them is copied.

    Args:
        pool: the images.
        where: which of them, on the host; None if only the device knows.
        index: the same, where the images are to be looked at.
    """

    def __init__(
        self, pool: ImagePool, where: Int64[Tensor, " b"] | None, index: Int64[Tensor, " b"]
    ) -> None:
        self.pool = pool
        self.where = where
        self.index = index

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`; those of the largest where only a device knows which they are."""
        sizes = self.pool.sizes
        if sizes is None or self.where is None:
            return [self.pool.size] * len(self.index)
        return [sizes[number] for number in self.where.tolist()]

    @property
    def extents(self) -> Extents:
        """See `ImageBatch.extents`."""
        extent = self.pool.extent(self.index.device)
        return self.sizes if extent is None else extent[self.index]

    @property
    def square(self) -> bool:
        """See `ImageBatch.square`: whether all of the pool are."""
        return self.pool.square

    @property
    def stack(self) -> Stack:
        """See `StackedBatch.stack`."""
        device = self.index.device
        return Stack(self.pool.on(device), self.index, extent=self.pool.extent(device))

    def overview_stack(self, size: Size) -> Stack:
        """See `StackedBatch.overview_stack`."""
        if size == self.pool.size and self.pool.sizes is None:
            return self.stack
        make = self.pool.make_overviews
        return self.pool.kept.stack(self.where, self.index, size, make, self.reads_host)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: which images."""
        return (self.index,)

    def with_sources(self, sources: tuple[Tensor, ...]) -> PooledBatch:
        """See `ImageBatch.with_sources`."""
        return PooledBatch(self.pool, None, *sources)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: as many of the same pool."""
        return (type(self), len(self), self.pool)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`; overviews are on the host only where the images are."""
        return self.stack.pixels.device != self.index.device

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PooledBatch:
        """See `ImageBatch.to`."""
        known = self.index if self.where is None else self.where
        return PooledBatch(self.pool, self.where, known.to(device, non_blocking=non_blocking))
