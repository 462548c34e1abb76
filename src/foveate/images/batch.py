"""Batches of images: what a model asks of them, whether they are one tensor or many files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.file_image import FileImage, read_file_patches
from foveate.images.gather import gather_patches
from foveate.images.image import Image
from foveate.images.opening import Openable, check_pixels, open_image, tensor_of
from foveate.images.overviews import read_overviews
from foveate.images.resample import resample
from foveate.images.tensor_image import TensorImage
from foveate.types import Int64, Num, Size


class ImageBatch(ABC):
    """Several images that are looked at together; all of a model's reading goes through here.

    A data set that knows a cheaper way to an overview or a patch subclasses it.
    """

    @property
    @abstractmethod
    def sizes(self) -> list[Size]:
        """The (height, width) of each image at full resolution."""

    @abstractmethod
    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """Each image at a low resolution, antialiased, on the device where the images are."""

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """Rectangles of the full resolution, from their corners; 0 outside an image."""
        return self.read_from(self.sources, yx_level0, size)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """The tensors that patches are read from; none where they are read from files."""
        return ()

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """What `read_patches` would read if these were the batch's sources."""
        raise InputError(f"patches of a {type(self).__name__} are not read from tensors")

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


class TensorBatch(ImageBatch):
    """Images of one size in one tensor, which is viewed and never copied.

    Args:
        pixels: the images.
    """

    def __init__(self, pixels: Num[Tensor, "b c H W"]) -> None:
        self.pixels = pixels

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [(self.pixels.shape[2], self.pixels.shape[3])] * self.pixels.shape[0]

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; the images themselves where that is their size."""
        return self.pixels if self.sizes[0] == size else resample(self.pixels, size)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: the pixels."""
        return (self.pixels,)

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        (pixels,) = sources
        return gather_patches(pixels, yx_level0.to(pixels.device), size)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TensorBatch:
        """See `ImageBatch.to`."""
        return TensorBatch(self.pixels.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> TensorBatch:
        """See `ImageBatch.pin_memory`."""
        return TensorBatch(self.pixels.pin_memory())


class ListBatch(ImageBatch):
    """Images of any sizes; those in files are read at the same time.

    Args:
        images: the images.
        device: where overviews and patches go; None leaves them where their images are.
        pinned: whether those of files are read into memory that a GPU can copy from by itself.
    """

    def __init__(
        self,
        images: list[Image],
        device: torch.device | str | None = None,
        pinned: bool = False,
    ) -> None:
        self.images = images
        self.device = None if device is None else torch.device(device)
        self.pinned = pinned
        self._overviews: Tensor | None = None

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return [image.size for image in self.images]

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`."""
        if self._overviews is not None and self._overviews.shape[2:] == size:
            return self._overviews
        files = self._files()
        if files is None:
            overviews = torch.stack([image.overview(size) for image in self.images])
        else:
            overviews = torch.stack(read_overviews([image.file for image in files], size))
        return self._moved(overviews.pin_memory() if self._pins() else overviews)

    def prefetch(self, overview_size: Size) -> ListBatch:
        """The batch with its overviews read already, as a loader's worker does for its model.

        Example:
            >>> batch = as_batch([torch.zeros(3, 50, 40), torch.ones(3, 60, 30)])
            >>> batch.prefetch((8, 6)).overviews((8, 6)).mean(dim=(1, 2, 3))
            tensor([0., 1.])
        """
        batch = ListBatch(self.images, self.device, self.pinned)
        batch._overviews = self.overviews(overview_size)
        return batch

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`."""
        files = self._files()
        if files is not None:
            return self._moved(read_file_patches(files, yx_level0, size, self._pins()))
        pairs = zip(self.images, yx_level0, strict=True)
        patches = torch.stack([image.read_patches(corners, size) for image, corners in pairs])
        return self._moved(patches)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> ListBatch:
        """See `ImageBatch.to`; overviews and patches go there when they are read."""
        batch = ListBatch(self.images, device, self.pinned)
        if self._overviews is not None:
            batch._overviews = self._overviews.to(device, non_blocking=non_blocking)
        return batch

    def pin_memory(self) -> ListBatch:
        """See `ImageBatch.pin_memory`."""
        batch = ListBatch(self.images, self.device, pinned=True)
        batch._overviews = self._overviews
        if self._overviews is not None and self._overviews.device.type == "cpu":
            batch._overviews = self._overviews.pin_memory()
        return batch

    @property
    def in_files(self) -> bool:
        """See `ImageBatch.in_files`."""
        return not all(isinstance(image, TensorImage) for image in self.images)

    def _files(self) -> list[FileImage] | None:
        """The images, if all of them are files."""
        files = [image for image in self.images if isinstance(image, FileImage)]
        return files if len(files) == len(self.images) else None

    def _pins(self) -> bool:
        to_gpu = self.device is not None and self.device.type == "cuda"
        return (self.pinned or to_gpu) and torch.cuda.is_available()

    def _moved(self, pixels: Tensor) -> Tensor:
        return pixels if self.device is None else pixels.to(self.device, non_blocking=True)


Images = ImageBatch | Tensor | np.ndarray | Sequence[Openable]
"""A batch, a (b, c, H, W) tensor, a (b, H, W, c) array, or a list of what `open_image` takes."""


def as_batch(images: Images) -> ImageBatch:
    """Check a batch of images; nothing is copied.

    Raises:
        InputError: for an empty batch, another shape or type, or images that differ in channels.
    """
    if isinstance(images, ImageBatch):
        return images
    if isinstance(images, Tensor):
        return TensorBatch(check_pixels(images, "b", "c", "H", "W"))
    if isinstance(images, np.ndarray):
        pixels = check_pixels(tensor_of(images), "b", "H", "W", "c")
        return TensorBatch(pixels.permute(0, 3, 1, 2))
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise InputError(
            f"cannot take a {type(images).__name__} as a batch of images; "
            "pass a (b, c, H, W) tensor or a list of images"
        )
    opened = [open_image(image) for image in images]
    if not opened:
        raise InputError("a batch needs at least one image, but the list is empty")
    channels = {image.channels for image in opened}
    if len(channels) > 1:
        raise InputError(
            f"images of one batch must have as many channels, but have {sorted(channels)}; "
            "open each file with open_image(path, channels=3)"
        )
    return ListBatch(opened)


def read_patches(
    images: Images, yx_level0: Int64[Tensor, "b n 2"], size: Size
) -> Num[Tensor, "b n c p q"]:
    """Read n patches of each image at full resolution.

    Args:
        images: a (b, c, H, W) tensor, a (b, H, W, c) array, or a list of images of any sizes.
        yx_level0: the top-left corner (y, x) of each patch; it may lie outside the image.
        size: height and width of the patches.

    Returns:
        The patches, in the type of the images and on their device; 0 outside an image.

    Example:
        >>> image = torch.arange(1, 10, dtype=torch.uint8).view(1, 1, 3, 3)
        >>> read_patches(image, torch.tensor([[[1, 1], [-1, 2]]]), (2, 2))
        tensor([[[[[5, 6],
                   [8, 9]]],
        <BLANKLINE>
                 [[[0, 0],
                   [3, 0]]]]], dtype=torch.uint8)
    """
    batch = as_batch(images)
    if len(yx_level0) != len(batch):
        raise InputError(
            f"cannot read patches of {len(batch)} images at the corners of {len(yx_level0)}; "
            "yx_level0 must be (b, n, 2)"
        )
    if min(size) < 1:
        raise InputError(f"cannot read patches of {size} pixels; both sides must be at least 1")
    return batch.read_patches(yx_level0, size)
