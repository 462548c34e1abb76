"""Large images that are kept as small pictures and where they lie, and composed when needed.

Thousands of megapixel images take a few megabytes. A batch is composed on the device that asks for
it, and small overviews are kept once they have been made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from foveate.datasets.dataset import ImageDataset
from foveate.images import KeptOverviews, Stack, StackedBatch, TensorBatch
from foveate.types import Float64, Int64, Size, UInt8


@dataclass(frozen=True)
class Placements:
    """What lies where in each image, in the order in which it is laid down.

    Attributes:
        glyph: which small picture.
        yx_level0: its top-left corner.
    """

    glyph: Int64[Tensor, "N m"]
    yx_level0: Int64[Tensor, "N m 2"]


class PlacedDataset(ImageDataset):
    """Images composed of small pictures on black.

    Args:
        glyphs: the small pictures, all square and of one size.
        placements: what lies where; each lies wholly inside its image.
        labels: the class of each image.
        classes: the name of each class.
        size: height and width of the images.
        decisive: how many of each image's first placements decide its label.
    """

    channels = 1

    def __init__(
        self,
        glyphs: UInt8[Tensor, "g s s"],
        placements: Placements,
        labels: Int64[Tensor, " N"],
        classes: tuple[str, ...],
        size: Size,
        decisive: int,
    ) -> None:
        self.glyphs = glyphs
        self.placements = placements
        self.labels = labels
        self.classes = classes
        self.size = size
        self.decisive = decisive
        self._on_device: dict[torch.device, tuple[Tensor, Tensor, Tensor]] = {}
        self.kept = KeptOverviews(len(labels))

    def images(self, index: Sequence[int]) -> PlacedBatch:
        """See `ImageDataset.images`."""
        where = torch.tensor(list(index), dtype=torch.int64)
        return PlacedBatch(self, where, where)

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """See `ImageDataset.truth`: the pictures that decide the label."""
        corner = self.placements.yx_level0[index, : self.decisive].double()
        return torch.cat([corner, corner + self.glyphs.shape[-1]], dim=-1)

    def compose(self, index: Int64[Tensor, " b"]) -> UInt8[Tensor, "b 1 H W"]:
        """The images themselves, in full, on the device that the index is on."""
        device = index.device
        glyphs, glyph, yx = self._tensors(device)
        (height, width), side = self.size, glyphs.shape[-1]
        offset = torch.arange(side, device=device)
        inside = (offset[:, None] * width + offset).flatten()
        corner = yx[index, :, 0] * width + yx[index, :, 1]
        pixels = torch.zeros(len(index), height * width, dtype=torch.uint8, device=device)
        # One placement of every image at a time: what is laid down later covers what came before.
        for place in range(glyph.shape[1]):
            picture = glyphs[glyph[index, place]].flatten(1)
            pixels.scatter_(1, corner[:, place, None] + inside, picture)
        return pixels.view(-1, 1, height, width)

    def make_overviews(
        self, index: Int64[Tensor, " b"], size: Size, device: torch.device
    ) -> UInt8[Tensor, "b 1 h w"]:
        """Overviews of some of the images, on a device."""
        return TensorBatch(self.compose(index.to(device))).overviews(size)

    def __getstate__(self) -> dict[str, object]:
        # What can be made again does not travel to other processes.
        return self.__dict__ | {"_on_device": {}}

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        if device not in self._on_device:
            kept = (self.glyphs, self.placements.glyph, self.placements.yx_level0)
            self._on_device[device] = tuple(tensor.to(device) for tensor in kept)  # type: ignore[assignment]
        return self._on_device[device]


class PlacedBatch(StackedBatch):
    """Images of a placed data set that are composed at the first look at their pixels.

    Args:
        dataset: the data set.
        where: which of its images, on the host; None if only the device knows.
        index: the same, where the images are to be composed.
    """

    def __init__(
        self, dataset: PlacedDataset, where: Int64[Tensor, " b"] | None, index: Int64[Tensor, " b"]
    ) -> None:
        self.dataset = dataset
        self.where = where
        self.index = index

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [self.dataset.size] * len(self.index)

    @cached_property
    def stack(self) -> Stack:
        """See `StackedBatch.stack`: the images themselves, in full."""
        return Stack(self.dataset.compose(self.index))

    def overview_stack(self, size: Size) -> Stack:
        """See `StackedBatch.overview_stack`."""
        if size == self.dataset.size:
            return self.stack
        make = self.dataset.make_overviews
        return self.dataset.kept.stack(self.where, self.index, size, make)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: which images."""
        return (self.index,)

    def with_sources(self, sources: tuple[Tensor, ...]) -> PlacedBatch:
        """See `ImageBatch.with_sources`."""
        return PlacedBatch(self.dataset, None, *sources)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: of the same data set."""
        return (*super().kind, self.dataset)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`: images are composed, and overviews kept, on the device."""
        return False

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PlacedBatch:
        """See `ImageBatch.to`."""
        known = self.index if self.where is None else self.where
        return PlacedBatch(self.dataset, self.where, known.to(device, non_blocking=non_blocking))
