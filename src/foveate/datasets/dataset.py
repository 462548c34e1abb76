"""What every data set is: labelled images, gathered into batches, and where the truth lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from foveate.images import ImageBatch
from foveate.types import Float64, Int64


@dataclass(frozen=True)
class Batch:
    """Labelled images.

    Attributes:
        images: the images, not yet read where they can be read in parts.
        labels: the class of each.
        index: which image of its data set each is.
    """

    images: ImageBatch
    labels: Int64[Tensor, " b"]
    index: Int64[Tensor, " b"]

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The batch on another device."""
        return Batch(
            self.images.to(device, non_blocking=non_blocking),
            self.labels.to(device, non_blocking=non_blocking),
            self.index.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> Batch:
        """The batch in memory that a GPU can copy from by itself."""
        return Batch(self.images.pin_memory(), self.labels.pin_memory(), self.index.pin_memory())


class ImageDataset(ABC):
    """Labelled images of any size.

    Attributes:
        classes: the name of each class.
        labels: the class of each image.
        channels: channels of the images.
    """

    classes: tuple[str, ...]
    labels: Int64[Tensor, " N"]
    channels: int

    @abstractmethod
    def images(self, index: Sequence[int]) -> ImageBatch:
        """Some of the images."""

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """Boxes (y0, x0, y1, x1) at level 0 around what decides an image's label.

        Only for checking where a model looks; never used in training. None known by default.
        """
        return torch.zeros(0, 4, dtype=torch.float64)

    def name(self, index: int) -> str:
        """What to call an image when talking to people."""
        return f"image {index}"

    def __len__(self) -> int:
        return len(self.labels)

    def gather(self, index: Sequence[int]) -> Batch:
        """Some of the images with their labels; the `collate_fn` of a loader over indices."""
        where = torch.tensor(list(index), dtype=torch.int64)
        return Batch(self.images(where.tolist()), self.labels[where], where)


class Subset(ImageDataset):
    """Some images of another data set.

    Args:
        whole: the data set.
        index: which of its images.
    """

    def __init__(self, whole: ImageDataset, index: Sequence[int]) -> None:
        self.whole = whole
        self.index = list(index)
        self.classes = whole.classes
        self.channels = whole.channels
        self.labels = whole.labels[torch.tensor(self.index, dtype=torch.int64)]

    def images(self, index: Sequence[int]) -> ImageBatch:
        """See `ImageDataset.images`."""
        return self.whole.images([self.index[i] for i in index])

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """See `ImageDataset.truth`."""
        return self.whole.truth(self.index[index])

    def name(self, index: int) -> str:
        """See `ImageDataset.name`."""
        return self.whole.name(self.index[index])


@dataclass(frozen=True)
class Splits:
    """A data set's parts.

    Attributes:
        train: to learn from.
        validation: to choose by.
        test: to report.
        spare: bytes of memory that may be spent on what is read of them from files.
    """

    train: ImageDataset
    validation: ImageDataset
    test: ImageDataset
    spare: int = field(default=0, kw_only=True)
