"""A batch that is read in the background, before it is asked for."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.pending import Pending
from foveate.types import Int64, Num, Size


class AheadBatch(ImageBatch):
    """Images whose overviews are read and moved from now on, and patches once somebody knows which.

    Args:
        batch: the images, on the host.
        device: where they will be looked at.
        overview_size: height and width of the overviews that will be asked for.

    Example:
        >>> from foveate.images import as_batch
        >>> images = as_batch([torch.zeros(3, 50, 40), torch.ones(3, 60, 30)])
        >>> batch = AheadBatch(images, torch.device("cpu"), overview_size=(8, 6))
        >>> corners = torch.zeros(2, 4, 2, dtype=torch.int64)
        >>> batch.begin_patches(corners, (5, 5))  # ... and something else meanwhile
        >>> batch.read_patches(corners, (5, 5)).shape
        torch.Size([2, 4, 3, 5, 5])
    """

    def __init__(self, batch: ImageBatch, device: torch.device, overview_size: Size) -> None:
        self.batch = batch
        self.device = device
        self.overview_size = overview_size
        self._overviews = Pending(self._begin, device)
        self._patches: tuple[Tensor, Size, Pending] | None = None

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.batch.sizes

    @property
    def in_files(self) -> bool:
        """See `ImageBatch.in_files`."""
        return self.batch.in_files

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; waits for those that are being read."""
        if size == self.overview_size:
            return self._overviews.get()
        return self._now().overviews(size)

    def begin_patches(self, yx_level0: Int64[Tensor, "b n 2"], size: Size) -> None:
        """Read patches in the background, for whoever asks with the same tensor of corners."""

        def read() -> Tensor:
            return self._moved.read_patches(yx_level0, size)

        self._patches = (yx_level0, size, Pending(read, self.device))

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; waits for those that are being read."""
        if self._patches is not None:
            corners, begun, patches = self._patches
            # To compare the corners' values would make the host wait for the device.
            if corners is yx_level0 and begun == size:
                return patches.get()
        return self._now().read_patches(yx_level0, size)

    def _now(self) -> ImageBatch:
        # What the background has moved is in the order of its own stream.
        return self.batch.to(self.device)

    def _begin(self) -> Num[Tensor, "b c h w"]:
        batch = self.batch.pin_memory() if self.device.type == "cuda" else self.batch
        self._moved = batch.to(self.device, non_blocking=True)
        return self._moved.overviews(self.overview_size)
