"""What every image is, wherever its pixels are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from foveate.images.georeference import Georeference
from foveate.types import Int64, Num, Size


class Image(ABC):
    """A picture of any size that is never held as floats, and seldom as a whole.

    Pixels are (c, h, w). Colours are uint8, or floats for images that came as floats.
    """

    @property
    @abstractmethod
    def channels(self) -> int:
        """How many channels each pixel has."""

    @property
    @abstractmethod
    def levels(self) -> tuple[Size, ...]:
        """The (height, width) of each resolution that is stored, finest first."""

    @property
    def size(self) -> Size:
        """(height, width) at full resolution."""
        return self.levels[0]

    @property
    def microns_per_pixel(self) -> float | None:
        """The physical size of a pixel at full resolution, if it is known."""
        return None

    @property
    def georeference(self) -> Georeference | None:
        """Where on Earth the image lies, if it is known."""
        return None

    @abstractmethod
    def overview(self, size: Size) -> Num[Tensor, "c h w"]:
        """The whole image at a low resolution, antialiased."""

    @abstractmethod
    def read(self, yx: tuple[int, int], size: Size, level: int = 0) -> Num[Tensor, "c p q"]:
        """A rectangle of one level, from corner (y, x) of that level; 0 outside the image."""

    def read_patches(self, yx_level0: Int64[Tensor, "n 2"], size: Size) -> Num[Tensor, "n c p q"]:
        """Several rectangles of the full resolution, from their corners."""
        return torch.stack([self.read((y, x), size) for y, x in yx_level0.tolist()])

    def close(self) -> None:  # noqa: B027, most images hold nothing
        """Let go of whatever is open. `with` does it at its end."""

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
