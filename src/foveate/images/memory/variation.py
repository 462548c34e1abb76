"""Variations of images, and what they do to rectangles of them.

Where things lie is arithmetic on the coordinates of what is read, and the change of colour is
applied to what was read, so overview and patches always show the same picture. A variation first
turns an image (exchanges its axes), then mirrors it, then moves it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foveate.coordinates import round_ratio
from foveate.errors import InputError
from foveate.images.memory.gather import gather_patches
from foveate.images.memory.packed import Packed
from foveate.sampling.chance import uniform
from foveate.types import Bool, Extents, Float, Int64, Num, Size


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
        """The same on another device, in one copy."""
        return Variation(*Packed.of(self.tensors).to(device, non_blocking).tensors)

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
        # By numpy, which takes half as long as torch for so few numbers.
        drawn = uniform((count, 10), torch.empty(0), generator).numpy()
        chance = 2 * drawn.astype(np.float32) - 1
        farthest = np.float32(shift) * np.array(overview_size, np.float32)
        channels = 3 if tint > 0 else 1
        gains = 1 + np.float32(gain) * chance[:, 2:3]
        parts = (
            np.rint(chance[:, :2] * farthest).astype(np.int64),
            gains + np.float32(tint) * chance[:, 7 : 7 + channels],
            np.repeat(np.float32(bias) * chance[:, 3:4], channels, axis=1),
            (chance[:, 4:6] > 0) & mirror,
            (chance[:, 6] > 0) & turn,
        )
        return Variation(*map(torch.from_numpy, parts))


@dataclass(frozen=True)
class Lens:
    """A variation as it acts on rectangles of the images.

    Attributes:
        variation: how each image is changed.
        overview_size: the overview in whose pixels shifts are counted.
        turns: whether the variation turns any image; says so without a look at it.
    """

    variation: Variation
    overview_size: Size
    turns: bool = False

    def locate(
        self, yx: Int64[Tensor, "b n 2"], sizes: Extents, size: Size
    ) -> Int64[Tensor, "b n 2"]:
        """Where rectangles of the varied images, of these sizes, lie in the images themselves."""
        variation, places = self.variation, []
        for axis in (0, 1):
            extent = _along(sizes, axis, yx.device)
            shift = variation.shift[:, axis].to(yx.device) * extent
            place = yx[..., axis] - round_ratio(shift, self.overview_size[axis])[:, None]
            mirror = variation.mirror[:, axis, None].to(yx.device)
            places.append(torch.where(mirror, extent[:, None] - size[axis] - place, place))
        there = torch.stack(places, dim=-1)
        if not self.turns:
            return there
        return torch.where(variation.turn[:, None, None].to(yx.device), there.flip(-1), there)

    def view(self, overviews: Num[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Whole images as they are seen, from 0 to 1."""
        height, width = overviews.shape[2:]
        whole = torch.zeros(len(overviews), 1, 2, dtype=torch.int64, device=overviews.device)
        corners = self.locate(whole, [(height, width)], (height, width))
        return self.alter(gather_patches(overviews, corners, (height, width)))[:, 0]

    def carry(self, boxes: Float[Tensor, "b m 4"], sizes: Extents) -> Float[Tensor, "b m 4"]:
        """Where boxes (y0, x0, y1, x1) of the images themselves, of these sizes, come to lie."""
        variation, places = self.variation, []
        corners = boxes.unflatten(-1, (2, 2))
        if self.turns:
            turned = variation.turn[:, None, None, None].to(boxes.device)
            corners = torch.where(turned, corners.flip(-1), corners)
        for axis in (0, 1):
            extent = _along(sizes, axis, boxes.device)
            shift = variation.shift[:, axis].to(boxes.device) * extent
            shift = round_ratio(shift, self.overview_size[axis])[:, None, None]
            mirror = variation.mirror[:, axis, None, None].to(boxes.device)
            place = corners[..., axis]
            mirrored = (extent[:, None, None] - place).flip(-1)
            places.append(torch.where(mirror, mirrored, place) + shift)
        return torch.stack(places, dim=-1).flatten(-2)

    def alter(self, pixels: Num[Tensor, "b n c p q"]) -> Float[Tensor, "b n c p q"]:
        """Turned and mirrored pixels of other colours, from 0 to 1."""
        gain, bias, mirror, turn = (value.to(pixels.device) for value in self.variation.tensors[1:])
        if self.turns:
            check_square("patches and overviews", pixels.shape[-2:])
            pixels = torch.where(turn.view(-1, 1, 1, 1, 1), pixels.mT, pixels)
        for axis in (0, 1):
            mirrored = pixels.flip(axis - 2)
            pixels = torch.where(mirror[:, axis].view(-1, 1, 1, 1, 1), mirrored, pixels)
        colours = pixels / 255 if pixels.dtype == torch.uint8 else pixels
        return (gain[:, None, :, None, None] * colours + bias[:, None, :, None, None]).clamp(0, 1)


def check_square(what: str, *sizes: tuple[int, ...]) -> None:
    """Raise unless all of these can be turned."""
    for height, width in sizes:
        if height != width:
            raise InputError(
                f"only square {what} can be turned, but one is {height}x{width}; leave turn away"
            )


def _along(sizes: Extents, axis: int, device: torch.device) -> Int64[Tensor, " _"]:
    """Heights or widths as a tensor; those of one size are made without a copy from the host."""
    if isinstance(sizes, Tensor):
        return sizes[:, axis].to(device)
    if len(set(sizes)) > 1:
        return torch.tensor([size[axis] for size in sizes]).to(device)
    return torch.full((1,), sizes[0][axis], device=device)
