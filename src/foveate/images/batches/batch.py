"""Batches of images: what a model asks of them, whether they are one tensor or many files."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.memory.form import Form
from foveate.types import Extents, Float, Int64, Num, Size


class ImageBatch(ABC):
    """Several images that are looked at together; all of a model's reading goes through here.

    A data set that knows a cheaper way to an overview or a patch subclasses it.
    """

    @property
    @abstractmethod
    def sizes(self) -> list[Size]:
        """The (height, width) of each image at full resolution."""

    @property
    def extents(self) -> Extents:
        """The same, as the device knows them if only it does."""
        return self.sizes

    @property
    def square(self) -> bool:
        """Whether all of them are, and all that can take their place in a recorded step."""
        return all(height == width for height, width in self.sizes)

    @abstractmethod
    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """Each image at a low resolution, antialiased, on the device where the images are."""

    @abstractmethod
    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """Rectangles of the full resolution, from their corners; 0 outside an image."""

    def read_inputs(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size, form: Form
    ) -> tuple[Num[Tensor, "b n c p q"], Float[Tensor, "m c p q"]]:
        """Patches, and the same as a network takes them, one after the other, where it is."""
        patches = self.read_patches(yx_level0, size).to(form.device, non_blocking=True)
        return patches, form.cast(patches.flatten(0, 1))

    def overview_inputs(self, size: Size, form: Form) -> Float[Tensor, "b c h w"]:
        """The overviews as a network takes them."""
        return form.cast(self.overviews(size))

    def resident_overviews(
        self, size: Size, device: torch.device
    ) -> tuple[Num[Tensor, "N c h w"], Int64[Tensor, " b"]] | None:
        """Overviews that a device has, of these images and others; and which of them are these.

        The latter is where the host knows it. None where overviews must be read or moved.
        """
        return None

    def prefetch(self, overview_size: Size) -> ImageBatch:
        """The batch with its overviews made already, as a loader's worker does for its model.

        A batch that comes by them quickly is left as it is.
        """
        return self

    @property
    def hints(self) -> Float[Tensor, "b m 4"] | None:
        """Boxes (y0, x0, y1, x1) at level 0 around what decides; NaN where there is none.

        For images that are made and not taken: whoever made them knows where to look. None for
        images of which nothing is known.
        """
        return None

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """The tensors that all is read from on a device; none where it is read from files."""
        return ()

    def with_sources(self, sources: tuple[Tensor, ...]) -> ImageBatch:
        """The batch as it would be if these were its sources."""
        raise InputError(f"a {type(self).__name__} is not read from tensors")

    @property
    def kind(self) -> tuple[object, ...]:
        """What two batches have in common of which one can take the other's sources."""
        return (type(self), *self.sizes)

    @property
    def reads_host(self) -> bool:
        """Whether a device reads images where they are in pinned host memory.

        PyTorch does not see such reads: see `keep_until_read`. A batch that does not know whether
        its tensors are read so says that they are.
        """
        return len(self.sources) > 0

    @property
    def in_files(self) -> bool:
        """Whether images are read from files: that takes time in which others can be trained on."""
        return False

    def __len__(self) -> int:
        return len(self.sizes)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> ImageBatch:
        """The batch on another device, as far as it is kept in memory at all."""
        return self

    def pin_memory(self) -> ImageBatch:
        """The batch in memory that a GPU can copy from by itself."""
        return self
