"""Small residual networks with pre-activation, as the paper's authors use them.

A network of L layers has L - 1 convolutions of 3x3 on its main path (those that fit a shortcut to a
new shape are not counted) and the linear head that is put on top of it.
"""

from __future__ import annotations

import itertools

from torch import Tensor, nn

from foveate.errors import InputError
from foveate.models.features import UnitNorm
from foveate.models.norm import NormReLU
from foveate.types import Float


class Block(nn.Module):
    """BN, ReLU, 3x3, BN, ReLU, 3x3, added to a shortcut that is 1x1 where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm1 = NormReLU(before)
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm2 = NormReLU(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        same = stride == 1 and before == after
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        """The block's output."""
        x = self.norm1(x)
        y = self.conv2(self.norm2(self.conv1(x)))
        total: Tensor = y + self.shortcut(x)
        return total


class ResNet(nn.Module):
    """A stem, residual blocks, and the mean or maximum over all places.

    Args:
        in_channels: channels of the input.
        channels: channels of each block; the stem has the first, the feature the last.
        strides: step of each block.
        stem: how many 3x3 convolutions come before the blocks.
        unit: whether features are scaled to norm 1, as a feature network's must be.
        largest: whether the maximum over all places is taken, not the mean: what is looked for may
            be a small part of the input.
    """

    def __init__(
        self,
        in_channels: int,
        channels: tuple[int, ...] = (32, 32, 32),
        strides: tuple[int, ...] = (2, 2, 2),
        stem: int = 1,
        unit: bool = True,
        largest: bool = False,
    ) -> None:
        super().__init__()
        if len(channels) != len(strides):
            raise InputError(
                f"channels and strides need one entry for each block, but have "
                f"{len(channels)} and {len(strides)}"
            )
        sizes = [in_channels, *[channels[0]] * stem]
        self.stem = nn.Sequential(
            *(
                nn.Conv2d(before, after, 3, padding=1, bias=False)
                for before, after in itertools.pairwise(sizes)
            )
        )
        befores = [channels[0], *channels]
        self.blocks = nn.Sequential(
            *(
                Block(before, after, stride)
                for before, after, stride in zip(befores, channels, strides, strict=False)
            )
        )
        self.norm = NormReLU(channels[-1])
        self.unit = UnitNorm() if unit else nn.Identity()
        self.largest = largest
        self.out_features = channels[-1]

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The feature of each image or patch."""
        x = self.norm(self.blocks(self.stem(x)))
        feature: Tensor = self.unit(x.amax((2, 3)) if self.largest else x.mean((2, 3)))
        return feature


def resnet8(in_channels: int, channels: int = 32) -> ResNet:
    """The paper's feature network for speed limits: 8 layers of 32 channels, norm 1."""
    return ResNet(in_channels, (channels,) * 3, (2, 2, 2))


def resnet8_max(in_channels: int, channels: int = 32) -> ResNet:
    """Ours for speed limits: channels double with each block, and the maximum is taken."""
    widths = (channels, 2 * channels, 4 * channels)
    return ResNet(in_channels, widths, (2, 2, 2), largest=True)


def resnet8_cnn(in_channels: int, channels: int = 32) -> ResNet:
    """The paper's CNN baseline for colon cancer: 8 convolutions of 32 channels."""
    return ResNet(in_channels, (channels,) * 3, (2, 2, 2), stem=2, unit=False)


def resnet16_cnn(in_channels: int, channels: int = 32) -> ResNet:
    """The paper's CNN baseline: 16 layers, from 32 channels, doubling every two blocks."""
    widths = tuple(channels * 2 ** (block // 2) for block in range(7))
    return ResNet(in_channels, widths, (2, 1, 2, 1, 2, 1, 2), unit=False)
