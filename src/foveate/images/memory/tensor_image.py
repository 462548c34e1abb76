"""An image that is already in memory."""

from __future__ import annotations

from torch import Tensor

from foveate.errors import InputError
from foveate.images.image import Image
from foveate.images.memory.gather import gather_patches
from foveate.images.memory.resample import resample
from foveate.types import Int64, Num, Size


class TensorImage(Image):
    """A (c, H, W) tensor of uint8 or floats, on any device; it is viewed, never copied.

    Example:
        >>> import torch
        >>> image = TensorImage(torch.full((3, 1000, 2000), 7, dtype=torch.uint8))
        >>> image.size, image.channels, image.levels
        ((1000, 2000), 3, ((1000, 2000),))
        >>> image.read((999, 1998), (2, 3))[0]
        tensor([[7, 7, 0],
                [0, 0, 0]], dtype=torch.uint8)
    """

    def __init__(self, pixels: Num[Tensor, "c H W"]) -> None:
        self.pixels = pixels

    @property
    def channels(self) -> int:
        """See `Image.channels`."""
        return self.pixels.shape[0]

    @property
    def levels(self) -> tuple[Size, ...]:
        """See `Image.levels`; there is one."""
        return ((self.pixels.shape[1], self.pixels.shape[2]),)

    def overview(self, size: Size) -> Num[Tensor, "c h w"]:
        """See `Image.overview`."""
        return resample(self.pixels[None], size)[0]

    def read(self, yx: tuple[int, int], size: Size, level: int = 0) -> Num[Tensor, "c p q"]:
        """See `Image.read`."""
        if level != 0:
            raise InputError(f"cannot read level {level} of an image in memory; it has level 0")
        out = self.pixels.new_zeros((self.channels, *size))
        (y, x), (height, width) = yx, self.size
        top, bottom = max(y, 0), min(y + size[0], height)
        left, right = max(x, 0), min(x + size[1], width)
        if top < bottom and left < right:
            inside = self.pixels[:, top:bottom, left:right]
            out[:, top - y : bottom - y, left - x : right - x] = inside
        return out

    def read_patches(self, yx_level0: Int64[Tensor, "n 2"], size: Size) -> Num[Tensor, "n c p q"]:
        """See `Image.read_patches`."""
        yx_level0 = yx_level0.to(self.pixels.device)
        return gather_patches(self.pixels[None], yx_level0[None], size)[0]

    def __repr__(self) -> str:
        return f"TensorImage({tuple(self.pixels.shape)}, {self.pixels.dtype})"
