"""Batches of images that are each their own: in files, or of different sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images.batches.batch import ImageBatch
from foveate.images.files.file_image import FileImage, read_file_patches
from foveate.images.files.overviews import read_overviews
from foveate.images.image import Image
from foveate.images.memory.tensor_image import TensorImage
from foveate.types import Int64, Num, Size


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
        return self.moved(overviews.pin_memory() if self.pins else overviews)

    def prefetch(self, overview_size: Size) -> ListBatch:
        """See `ImageBatch.prefetch`.

        Example:
            >>> from foveate.images import as_batch
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
            return self.moved(read_file_patches(files, yx_level0, size, self.pins))
        pairs = zip(self.images, yx_level0, strict=True)
        patches = torch.stack([image.read_patches(corners, size) for image, corners in pairs])
        return self.moved(patches)

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

    @property
    def pins(self) -> bool:
        """Whether what is read of files is in pinned memory, on its way to a GPU."""
        to_gpu = self.device is not None and self.device.type == "cuda"
        return (self.pinned or to_gpu) and torch.cuda.is_available()

    def moved(self, pixels: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
        """Pixels that were read, where they should be."""
        return pixels if self.device is None else pixels.to(self.device, non_blocking=True)
