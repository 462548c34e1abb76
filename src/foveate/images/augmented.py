"""Varied images: moved, mirrored, turned, of other colours, and none of them touched.

Where things lie is arithmetic on the coordinates of what is read, and the change of colour is
applied to what was read, so overview and patches always show the same picture. A variation first
turns an image (exchanges its axes), then mirrors it, then moves it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.batch import ImageBatch
from foveate.images.gather import gather_patches
from foveate.types import Bool, Float, Int64, Num, Size


@dataclass(frozen=True)
class Variation:
    """How each image of a batch is changed.

    Attributes:
        shift: how far the picture moves down and right, in pixels of the overview.
        gain: what its colours, from 0 to 1, are multiplied by; one for each channel, or for all.
        bias: what is then added to them.
        mirror: whether it is mirrored top to bottom, and left to right.
        turn: whether rows become columns first; for square images, overviews and patches only.
    """

    shift: Int64[Tensor, "b 2"]
    gain: Float[Tensor, "b k"]
    bias: Float[Tensor, "b k"]
    mirror: Bool[Tensor, "b 2"]
    turn: Bool[Tensor, " b"]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of it, in order."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Variation:
        """The same on another device."""
        return Variation(*(value.to(device, non_blocking=non_blocking) for value in self.tensors))

    @staticmethod
    def draw(
        count: int,
        overview_size: Size,
        generator: torch.Generator | None = None,
        *,
        shift: float = 0.1,
        gain: float = 0.2,
        bias: float = 0.1,
        tint: float = 0.0,
        mirror: bool = False,
        turn: bool = False,
    ) -> Variation:
        """Draw variations at random.

        Args:
            count: how many images.
            overview_size: height and width of the overview.
            generator: where chance comes from; it must be on the host.
            shift: the farthest shift, as a share of the image.
            gain: how far the gain is from 1 at most.
            bias: how far the bias is from 0 at most.
            tint: how far the gains of an image's three channels are from each other's at most.
            mirror: whether half of the images are mirrored, in each direction.
            turn: whether half of them are turned.
        """
        chance = 2 * torch.rand(count, 10, generator=generator) - 1
        farthest = shift * torch.tensor(overview_size)
        channels = 3 if tint > 0 else 1
        return Variation(
            (chance[:, :2] * farthest).round().long(),
            1 + gain * chance[:, 2:3] + tint * chance[:, 7 : 7 + channels],
            (bias * chance[:, 3:4]).expand(-1, channels).contiguous(),
            (chance[:, 4:6] > 0) & mirror,
            (chance[:, 6] > 0) & turn,
        )


class AugmentedBatch(ImageBatch):
    """A batch seen through a variation.

    Args:
        batch: the images.
        variation: how each is changed.
        overview_size: the overview in whose pixels shifts are counted; shifts of whole overview
            pixels are exact in overview and patches alike.
        turns: whether the variation turns any image; says so without a look at it.

    Raises:
        InputError: for images that are turned but not square.
    """

    def __init__(
        self,
        batch: ImageBatch,
        variation: Variation,
        overview_size: Size,
        turns: bool = False,
    ) -> None:
        self.batch = batch
        self.variation = variation
        self.overview_size = overview_size
        self.turns = turns
        if turns:
            _check_square("images", *batch.sizes)

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.batch.sizes

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; floats from 0 to 1."""
        overviews = self.batch.overviews(size)
        whole = torch.zeros(len(self), 1, 2, dtype=torch.int64, device=overviews.device)
        corners = self._in_image(self.variation, whole, [size] * len(self), size)
        return self._altered(self.variation, gather_patches(overviews, corners, size))[:, 0]

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; floats from 0 to 1."""
        corners = self._in_image(self.variation, yx_level0, self.sizes, size)
        return self._altered(self.variation, self.batch.read_patches(corners, size))

    @property
    def in_files(self) -> bool:
        """See `ImageBatch.in_files`."""
        return self.batch.in_files

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: those of the images, and the variation."""
        inner = self.batch.sources
        return (*inner, *self.variation.tensors) if inner else ()

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        inner = len(self.batch.sources)
        variation = Variation(*sources[inner:])
        corners = self._in_image(variation, yx_level0, self.sizes, size)
        return self._altered(variation, self.batch.read_from(sources[:inner], corners, size))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> AugmentedBatch:
        """See `ImageBatch.to`."""
        moved = self.batch.to(device, non_blocking=non_blocking)
        variation = self.variation.to(device, non_blocking=non_blocking)
        return AugmentedBatch(moved, variation, self.overview_size, self.turns)

    def pin_memory(self) -> AugmentedBatch:
        """See `ImageBatch.pin_memory`."""
        pinned = self.batch.pin_memory()
        return AugmentedBatch(pinned, self.variation, self.overview_size, self.turns)

    def _in_image(
        self, variation: Variation, yx: Int64[Tensor, "b n 2"], sizes: list[Size], size: Size
    ) -> Int64[Tensor, "b n 2"]:
        """Where rectangles of the varied images, of these sizes, lie in the images themselves."""
        extent = _rows(sizes, yx.device)
        ratio = extent / _rows([self.overview_size], yx.device)
        shift, mirror, turn = (
            value.to(yx.device) for value in (variation.shift, variation.mirror, variation.turn)
        )
        yx = yx - (shift * ratio).round().long()[:, None]
        other_side = extent.long()[:, None] - _rows([size], yx.device).long() - yx
        yx = torch.where(mirror[:, None], other_side, yx)
        return torch.where(turn[:, None, None], yx.flip(-1), yx) if self.turns else yx

    def _altered(
        self, variation: Variation, pixels: Num[Tensor, "b n c p q"]
    ) -> Float[Tensor, "b n c p q"]:
        """Turned and mirrored pixels of other colours."""
        gain, bias, mirror, turn = (
            value.to(pixels.device)
            for value in (variation.gain, variation.bias, variation.mirror, variation.turn)
        )
        if self.turns:
            _check_square("patches and overviews", pixels.shape[-2:])
            pixels = torch.where(turn.view(-1, 1, 1, 1, 1), pixels.mT, pixels)
        for axis in (0, 1):
            mirrored = pixels.flip(axis - 2)
            pixels = torch.where(mirror[:, axis].view(-1, 1, 1, 1, 1), mirrored, pixels)
        colours = pixels / 255 if pixels.dtype == torch.uint8 else pixels
        return (gain[:, None, :, None, None] * colours + bias[:, None, :, None, None]).clamp(0, 1)


def _rows(sizes: list[Size], device: torch.device) -> Float[Tensor, "_ 2"]:
    """Heights and widths as a tensor; those of one size are made without a copy from the host."""
    if len(set(sizes)) > 1:
        return torch.tensor(sizes, dtype=torch.float64).to(device)
    sides = [torch.full((1,), side, dtype=torch.float64, device=device) for side in sizes[0]]
    return torch.stack(sides, dim=1)


def _check_square(what: str, *sizes: tuple[int, ...]) -> None:
    for height, width in sizes:
        if height != width:
            raise InputError(
                f"only square {what} can be turned, but one is {height}x{width}; leave turn away"
            )
