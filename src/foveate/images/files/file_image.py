"""An image in a file, of which only what is asked for is read."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.files.helpers import helpers
from foveate.images.files.overviews import read_overviews
from foveate.images.files.rectangles import Rectangle, read_rectangles
from foveate.images.files.tiled_file import TiledFile
from foveate.images.georeference import Georeference
from foveate.images.image import Image
from foveate.types import Int64, Size, UInt8


class FileImage(Image):
    """An image in a file, or at an address.

    It pickles as its path and options, and holds nothing open itself: all images of a process share
    a bounded number of open files and a cache of decoded tiles. It may be read from any thread and
    in any worker. Closing it lets go of the file at once; reading it again opens it anew.

    Patches are uint8, and lie in memory channels last, as they are decoded.

    Args:
        file: the file, and what is known of it.
    """

    def __init__(self, file: TiledFile) -> None:
        self.file = file

    @property
    def channels(self) -> int:
        """See `Image.channels`."""
        return self.file.channels

    @property
    def levels(self) -> tuple[Size, ...]:
        """See `Image.levels`."""
        return self.file.layout.sizes

    @property
    def microns_per_pixel(self) -> float | None:
        """See `Image.microns_per_pixel`."""
        return self.file.layout.microns_per_pixel

    @property
    def georeference(self) -> Georeference | None:
        """See `Image.georeference`."""
        return self.file.layout.georeference

    def overview(self, size: Size) -> UInt8[Tensor, "c h w"]:
        """See `Image.overview`."""
        return read_overviews([self.file], size)[0]

    def read(self, yx: tuple[int, int], size: Size, level: int = 0) -> UInt8[Tensor, "c p q"]:
        """See `Image.read`."""
        if not 0 <= level < len(self.levels):
            raise InputError(
                f"cannot read level {level} of {self.file.location.name}; "
                f"it has levels 0 to {len(self.levels) - 1}"
            )
        check_read_size(size)
        pixels = np.zeros((*size, self.channels), np.uint8)
        read_rectangles([Rectangle(self.file, level, yx, pixels)])
        return torch.from_numpy(pixels).permute(2, 0, 1)

    def read_patches(self, yx_level0: Int64[Tensor, "n 2"], size: Size) -> UInt8[Tensor, "n c p q"]:
        """See `Image.read_patches`."""
        return read_file_patches([self], yx_level0[None], size)[0]

    def close(self) -> None:
        """See `Image.close`."""
        self.file.close()

    def __repr__(self) -> str:
        height, width = self.size
        return f"FileImage({self.file.location.name!r}, {height} x {width}, {self.file.backend})"


def read_file_patches(
    images: list[FileImage],
    yx_level0: Int64[Tensor, "b n 2"],
    size: Size,
    pinned: bool = False,
) -> UInt8[Tensor, "b n c p q"]:
    """Patches of several files, read at the same time; they lie in memory channels last.

    Args:
        images: the images, of as many channels.
        yx_level0: the corners.
        size: height and width of the patches.
        pinned: whether the result is in memory that a GPU can copy from by itself.
    """
    check_read_size(size)
    b, n = yx_level0.shape[:2]
    shape, corners = (b, n, *size, images[0].channels), yx_level0.tolist()
    others = helpers()
    make = torch.zeros if others is None else torch.empty  # others send what is outside, too
    patches = make(shape, dtype=torch.uint8, pin_memory=pinned)
    rooms = patches.numpy()
    if others is not None:
        others.read([image.file for image in images], corners, rooms)
    else:
        read_rectangles(
            [
                Rectangle(image.file, 0, (y, x), room)
                for image, corners_of, rooms_of in zip(images, corners, rooms, strict=True)
                for (y, x), room in zip(corners_of, rooms_of, strict=True)
            ]
        )
    return patches.permute(0, 1, 4, 2, 3)


def check_read_size(size: Size) -> None:
    """Raise unless there is something to read."""
    if min(size) < 1:
        raise InputError(f"cannot read {size} pixels; both sides must be at least 1")
