"""Batches of images of one size that lie together in memory."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from foveate.images.batches.batch import ImageBatch
from foveate.images.memory.device_reads import kernels_for
from foveate.images.memory.form import Form
from foveate.images.memory.resample import resample
from foveate.images.memory.stack import Stack
from foveate.types import Float, Int64, Num, Size


class StackedBatch(ImageBatch):
    """Images of one size whose pixels are at hand, and so are read without the host's doing."""

    @property
    @abstractmethod
    def stack(self) -> Stack:
        """The images."""

    @abstractmethod
    def overview_stack(self, size: Size) -> Stack:
        """Their overviews."""

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`."""
        return self.overview_stack(size).whole()

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`."""
        return self.stack.read(yx_level0, size)

    def read_inputs(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size, form: Form
    ) -> tuple[Num[Tensor, "b n c p q"], Float[Tensor, "m c p q"]]:
        """See `ImageBatch.read_inputs`."""
        return self.stack.inputs(yx_level0, size, form)

    def overview_inputs(self, size: Size, form: Form) -> Float[Tensor, "b c h w"]:
        """See `ImageBatch.overview_inputs`."""
        return self.overview_stack(size).whole_inputs(form)


class TensorBatch(StackedBatch):
    """Images of one size in one tensor, which is viewed and never copied.

    Images in pinned host memory whose overviews are known stay there when the batch moves to a
    GPU: only overviews and patches cross the bus.

    Args:
        pixels: the images.
        overviews: their overviews, if they are known.
        address: where each image lies in memory, for images that stay on the host.
    """

    def __init__(
        self,
        pixels: Num[Tensor, "b c H W"],
        overviews: Num[Tensor, "b c h w"] | None = None,
        address: Int64[Tensor, " b"] | None = None,
    ) -> None:
        self.pixels = pixels
        self.known = overviews
        self.address = address

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [self.stack.size] * len(self.pixels)

    @property
    def stack(self) -> Stack:
        """See `StackedBatch.stack`."""
        return Stack(self.pixels, address=self.address)

    def overview_stack(self, size: Size) -> Stack:
        """See `StackedBatch.overview_stack`; the images themselves where that is their size."""
        if self.known is not None and self.known.shape[2:] == size:
            return Stack(self.known)
        return self.stack if self.stack.size == size else Stack(resample(self.pixels, size))

    def prefetch(self, overview_size: Size) -> TensorBatch:
        """See `ImageBatch.prefetch`.

        Example:
            >>> TensorBatch(torch.ones(2, 3, 50, 40)).prefetch((8, 6)).known.shape
            torch.Size([2, 3, 8, 6])
        """
        return TensorBatch(self.pixels, self.overviews(overview_size), self.address)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: the pixels, or where they are, and known overviews."""
        images = self.pixels if self.address is None else self.address
        return (images,) if self.known is None else (images, self.known)

    def with_sources(self, sources: tuple[Tensor, ...]) -> TensorBatch:
        """See `ImageBatch.with_sources`."""
        images, known = (*sources, None)[:2]
        assert images is not None
        if self.address is None:
            return TensorBatch(images, known)
        return TensorBatch(self.pixels, known, images)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`; images that are found by address must lie alike in memory."""
        lie = () if self.address is None else (self.pixels.shape, self.pixels.stride())
        return (*super().kind, self.address is None, *lie)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`."""
        return self.address is not None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TensorBatch:
        """See `ImageBatch.to`."""
        device = torch.device(device)
        known = self.known
        if known is not None:
            known = known.to(device, non_blocking=non_blocking)
            on_host = self.pixels.device.type == "cpu" and device.type == "cuda"
            if on_host and kernels_for(self.pixels, device):
                step = self.pixels.stride(0) * self.pixels.element_size()
                start = self.pixels.data_ptr()
                address = torch.arange(len(self.pixels), device=device) * step + start
                return TensorBatch(self.pixels, known, address)
        return TensorBatch(self.pixels.to(device, non_blocking=non_blocking), known)

    def pin_memory(self) -> TensorBatch:
        """See `ImageBatch.pin_memory`."""
        known = None if self.known is None else self.known.pin_memory()
        return TensorBatch(self.pixels.pin_memory(), known)
