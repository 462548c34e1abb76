"""Varied images: shifted, brighter or darker, of more or less contrast, and none of them touched.

A shift is arithmetic on the coordinates of what is read, and the change of colour is applied to
what was read, so overview and patches always show the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.images.batch import ImageBatch
from foveate.images.gather import gather_patches
from foveate.types import Float, Int64, Num, Size


@dataclass(frozen=True)
class Variation:
    """How each image of a batch is changed.

    Attributes:
        shift: how far the picture moves down and right, in pixels of the overview.
        gain: what its colours, from 0 to 1, are multiplied by.
        bias: what is then added to them.
    """

    shift: Int64[Tensor, "b 2"]
    gain: Float[Tensor, " b"]
    bias: Float[Tensor, " b"]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Variation:
        """The same on another device."""
        values = (self.shift, self.gain, self.bias)
        return Variation(*(value.to(device, non_blocking=non_blocking) for value in values))

    @staticmethod
    def draw(
        count: int,
        overview_size: Size,
        generator: torch.Generator | None = None,
        shift: float = 0.1,
        gain: float = 0.2,
        bias: float = 0.1,
    ) -> Variation:
        """Draw variations at random.

        Args:
            count: how many images.
            overview_size: height and width of the overview.
            generator: where chance comes from; it must be on the host.
            shift: the farthest shift, as a share of the image.
            gain: how far the gain is from 1 at most.
            bias: how far the bias is from 0 at most.
        """
        chance = 2 * torch.rand(count, 4, generator=generator) - 1
        farthest = shift * torch.tensor(overview_size)
        return Variation(
            (chance[:, :2] * farthest).round().long(),
            1 + gain * chance[:, 2],
            bias * chance[:, 3],
        )


class AugmentedBatch(ImageBatch):
    """A batch seen through a variation.

    Args:
        batch: the images.
        variation: how each is changed.
        overview_size: the overview in whose pixels shifts are counted; shifts of whole overview
            pixels are exact in overview and patches alike.
    """

    def __init__(self, batch: ImageBatch, variation: Variation, overview_size: Size) -> None:
        self.batch = batch
        self.variation = variation
        self.overview_size = overview_size

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.batch.sizes

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; floats from 0 to 1."""
        overviews = self.batch.overviews(size)
        shift = self._scaled(self.variation, [size] * len(self), overviews.device)
        shifted = gather_patches(overviews, -shift[:, None], size)
        return _recoloured(shifted, self.variation)[:, 0]

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; floats from 0 to 1."""
        corners = yx_level0 - self._scaled(self.variation, self.sizes, yx_level0.device)[:, None]
        return _recoloured(self.batch.read_patches(corners, size), self.variation)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> AugmentedBatch:
        """See `ImageBatch.to`."""
        moved = self.batch.to(device, non_blocking=non_blocking)
        variation = self.variation.to(device, non_blocking=non_blocking)
        return AugmentedBatch(moved, variation, self.overview_size)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: those of the images, and the variation."""
        inner, variation = self.batch.sources, self.variation
        return (*inner, variation.shift, variation.gain, variation.bias) if inner else ()

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        *inner, shift, gain, bias = sources
        variation = Variation(shift, gain, bias)
        corners = yx_level0 - self._scaled(variation, self.sizes, yx_level0.device)[:, None]
        return _recoloured(self.batch.read_from(tuple(inner), corners, size), variation)

    def _scaled(
        self, variation: Variation, sizes: list[Size], device: torch.device
    ) -> Int64[Tensor, "b 2"]:
        """The shift in pixels of views of these sizes."""
        shift = variation.shift.to(device)
        if len(set(sizes)) > 1:
            ratio = torch.tensor(sizes).double() / torch.tensor(self.overview_size)
            return (shift * ratio.to(device)).round().long()
        # Without a tensor of sizes nothing is copied from the host, which a recording forbids.
        down, right = (
            shift[:, axis].double() * (sizes[0][axis] / self.overview_size[axis]) for axis in (0, 1)
        )
        return torch.stack([down, right], dim=1).round().long()


def _recoloured(
    pixels: Num[Tensor, "b n c p q"], variation: Variation
) -> Float[Tensor, "b n c p q"]:
    gain, bias = (
        value.to(pixels.device).view(-1, 1, 1, 1, 1) for value in (variation.gain, variation.bias)
    )
    colours = pixels / 255 if pixels.dtype == torch.uint8 else pixels
    return (gain * colours + bias).clamp(0, 1)
