"""Large images that are kept as small pictures and where they lie, and composed when needed.

Thousands of megapixel images take a few megabytes. A batch is composed on the device that asks for
it, and small overviews are kept once they have been made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.datasets.dataset import ImageDataset
from foveate.images import ImageBatch, KeptOverviews, TensorBatch
from foveate.types import Float64, Int64, Num, Size, UInt8


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

    def __getstate__(self) -> dict[str, object]:
        # What can be made again does not travel to other processes.
        return self.__dict__ | {"_on_device": {}}

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        if device not in self._on_device:
            kept = (self.glyphs, self.placements.glyph, self.placements.yx_level0)
            self._on_device[device] = tuple(tensor.to(device) for tensor in kept)  # type: ignore[assignment]
        return self._on_device[device]


class PlacedBatch(ImageBatch):
    """Images of a placed data set that are composed at the first look at their pixels.

    Args:
        dataset: the data set.
        where: which of its images, on the host.
        index: the same, where the images are to be composed.
    """

    def __init__(
        self, dataset: PlacedDataset, where: Int64[Tensor, " b"], index: Int64[Tensor, " b"]
    ) -> None:
        self.dataset = dataset
        self.where = where
        self.index = index
        self._composed: TensorBatch | None = None

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [self.dataset.size] * len(self.where)

    def composed(self) -> TensorBatch:
        """The images themselves, in full."""
        if self._composed is None:
            self._composed = TensorBatch(self.dataset.compose(self.index))
        return self._composed

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`."""
        if size == self.dataset.size:
            return self.composed().pixels
        return self.dataset.kept.get(
            self.where, size, self.index.device, lambda: self.composed().overviews(size)
        )

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`."""
        return self.composed().read_patches(yx_level0, size)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: which images."""
        return (self.index,)

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        (index,) = sources
        return TensorBatch(self.dataset.compose(index)).read_patches(yx_level0, size)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PlacedBatch:
        """See `ImageBatch.to`."""
        return PlacedBatch(
            self.dataset, self.where, self.where.to(device, non_blocking=non_blocking)
        )
