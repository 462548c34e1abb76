"""A batch that is read in the background, before it is asked for, and what is left of it then."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.pending import Pending
from foveate.types import Draw, Extents, Glance, Int64, Num, Size


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
        overviews = self._overviews

        def read() -> Tensor:
            overviews.settle()  # until then, nothing is moved
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

    def seen(self, glance: Glance) -> SeenBatch:
        """What a step needs that looks where `glance` says; waits for what is being read."""
        patches = self.read_patches(glance.yx_level0, self._patch_size)
        return SeenBatch(self.overviews(self.overview_size), patches, glance, self.sizes)

    def glimpsed(self) -> OverviewBatch:
        """What it takes to decide where to look; waits for overviews that are being read."""
        known = self.overviews(self.overview_size)
        extents = torch.tensor(self.sizes, dtype=torch.int64)
        return OverviewBatch(known, extents.to(known.device, non_blocking=True))

    def settle(self) -> None:
        """Wait until nothing is read in the background any more."""
        self._overviews.settle()
        if self._patches is not None:
            self._patches[-1].settle()

    @property
    def _patch_size(self) -> Size:
        if self._patches is None:
            raise InputError("no patches are being read: begin_patches says which")
        return self._patches[1]

    def _now(self) -> ImageBatch:
        # What the background has moved is in the order of its own stream.
        return self.batch.to(self.device)

    def _begin(self) -> Num[Tensor, "b c h w"]:
        batch = self.batch.pin_memory() if self.device.type == "cuda" else self.batch
        self._moved = batch.to(self.device, non_blocking=True)
        return self._moved.overviews(self.overview_size)


class OverviewBatch(ImageBatch):
    """Images of which only the overviews are there, to decide where to look.

    It is read from tensors, whatever they were read from, so that the look can be replayed.

    Args:
        known: the overviews.
        extents: the height and width of each image, where the overviews are.
    """

    def __init__(self, known: Num[Tensor, "b c h w"], extents: Int64[Tensor, "b 2"]) -> None:
        self.known = known
        self._extents = extents

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [(height, width) for height, width in self._extents.tolist()]

    @property
    def extents(self) -> Extents:
        """See `ImageBatch.extents`."""
        return self._extents

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; of one size only."""
        return _of_size(self.known, size)

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; there are none."""
        raise InputError("only overviews are kept, to decide where to look")

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`."""
        return (self.known, self._extents)

    def with_sources(self, sources: tuple[Tensor, ...]) -> OverviewBatch:
        """See `ImageBatch.with_sources`."""
        return OverviewBatch(*sources)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: how large the images are is one of the sources."""
        return (type(self),)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`."""
        return False


class SeenBatch(ImageBatch):
    """Images of which no more is there than a step needs: their overviews, and chosen patches.

    It is read from tensors, whatever they were read from, so that a step can be replayed.

    Args:
        known: the overviews.
        patches: the patches.
        glance: where they were chosen.
        sizes: the height and width of each image.
    """

    def __init__(
        self,
        known: Num[Tensor, "b c h w"],
        patches: Num[Tensor, "b n c p q"],
        glance: Glance,
        sizes: list[Size],
    ) -> None:
        self.known = known
        self.patches = patches
        self.glance = glance
        self._sizes = sizes

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self._sizes

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; of one size only."""
        return _of_size(self.known, size)

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; those of the glance only."""
        if yx_level0 is not self.glance.yx_level0 or size != tuple(self.patches.shape[-2:]):
            raise InputError("only the patches that were chosen are kept: pass the glance, too")
        return self.patches

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`."""
        glance = self.glance
        draw = glance.draw
        seen = (self.known, self.patches)
        return (*seen, glance.log_attention, draw.index, draw.weight, glance.yx_level0)

    def with_sources(self, sources: tuple[Tensor, ...]) -> SeenBatch:
        """See `ImageBatch.with_sources`."""
        known, patches, log_attention, index, weight, yx_level0 = sources
        glance = Glance(log_attention, Draw(index, weight), yx_level0)
        return SeenBatch(known, patches, glance, self._sizes)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: how large the images are does not matter any more."""
        return (type(self),)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`."""
        return False


def _of_size(known: Num[Tensor, "b c h w"], size: Size) -> Num[Tensor, "b c h w"]:
    kept = tuple(known.shape[-2:])
    if size != kept:
        raise InputError(f"only overviews of {kept} are kept, but {size} was asked for")
    return known
