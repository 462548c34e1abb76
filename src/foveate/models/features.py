"""Networks that turn a patch into a vector of norm 1.

The paper's two, the stronger small one that is the default here, and what they share. Each knows
the length of its vectors as `out_features`, so that a head can be built for it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.errors import InputError
from foveate.models.norm import NormReLU
from foveate.types import Float, Size


class UnitNorm(nn.Module):
    """Scales vectors to L2 norm 1, in float32 at least.

    Example:
        >>> UnitNorm()(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """The vectors over their norms."""
        return F.normalize(x if x.dtype == torch.float64 else x.float(), dim=-1)


class GlobalMax(nn.Module):
    """The largest value of each channel."""

    def forward(self, x: Float[Tensor, "b d h w"]) -> Float[Tensor, "b d"]:
        """The maximum over all places."""
        return x.amax((2, 3))


class ConvFeature(nn.Sequential):
    """Convolutions with batch norm, ReLU and max-pooling, then the maximum over all places.

    With its defaults, the feature network that is best on Megapixel MNIST; with strides for pools
    it is cheap enough for a CPU.

    Args:
        in_channels: channels of the patches.
        channels: channels after each convolution; the last is the length of the feature.
        kernels: width of each convolution, odd.
        strides: step of each convolution.
        pools: width of the max-pooling after each, 1 for none.

    Example:
        >>> feature = ConvFeature(1)
        >>> feature(torch.rand(4, 1, 50, 50)).norm(dim=-1).round().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        in_channels: int,
        channels: tuple[int, ...] = (32, 64, 64),
        kernels: tuple[int, ...] = (5, 3, 3),
        strides: tuple[int, ...] = (1, 1, 1),
        pools: tuple[int, ...] = (2, 2, 1),
    ) -> None:
        if not len(channels) == len(kernels) == len(strides) == len(pools):
            raise InputError(
                "channels, kernels, strides and pools need one entry for each layer, but have "
                f"{len(channels)}, {len(kernels)}, {len(strides)} and {len(pools)}"
            )
        layers: list[nn.Module] = []
        before = in_channels
        for after, kernel, stride, pool in zip(channels, kernels, strides, pools, strict=True):
            conv = nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False)
            # Nothing, where a ReLU stood: the layers after it keep their numbers in checkpoints.
            layers += [conv, NormReLU(after), nn.Identity()]
            layers += [nn.MaxPool2d(pool)] if pool > 1 else []
            before = after
        super().__init__(*layers, GlobalMax(), UnitNorm())
        self.out_features = before


class LeNetFeature(nn.Sequential):
    """The paper's feature network for Megapixel MNIST: 7x7, three 3x3, the maximum of all places.

    Args:
        in_channels: channels of the patches.
        channels: channels of each layer, and the length of the feature.
    """

    def __init__(self, in_channels: int, channels: int = 32) -> None:
        layers: list[nn.Module] = [nn.Conv2d(in_channels, channels, 7), nn.ReLU(inplace=True)]
        for _ in range(3):
            layers += [nn.Conv2d(channels, channels, 3), nn.ReLU(inplace=True)]
        super().__init__(*layers, GlobalMax(), UnitNorm())
        self.out_features = channels


class IlseFeature(nn.Sequential):
    """The feature network of Ilse et al. (2018) for histopathology, as the paper uses it.

    4x4 to 36 channels, pool, 3x3 to 48, pool, then two dense layers.

    Args:
        in_channels: channels of the patches.
        patch_size: height and width of the patches, 27x27 in the paper.
        features: width of the dense layers, and the length of the feature.
    """

    def __init__(self, in_channels: int, patch_size: Size = (27, 27), features: int = 512) -> None:
        height, width = (((side - 3) // 2 - 2) // 2 for side in patch_size)
        if height < 1 or width < 1:
            raise InputError(f"IlseFeature needs patches of at least 9x9, but has {patch_size}")
        super().__init__(
            nn.Conv2d(in_channels, 36, 4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(36, 48, 3),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(48 * height * width, features),
            nn.ReLU(inplace=True),
            nn.Linear(features, features),
            nn.ReLU(inplace=True),
            UnitNorm(),
        )
        self.out_features = features


class LocatedFeature(nn.Module):
    """A feature network that also knows where in the image its patch lies.

    For a model with `pass_location=True`: adds a learned function of the location to the feature.

    Args:
        network: turns patches into features.
        out_features: the length of those features.
        hidden: width of the layer between location and feature.
    """

    def __init__(self, network: nn.Module, out_features: int, hidden: int = 32) -> None:
        super().__init__()
        self.network = network
        self.location = nn.Sequential(
            nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, out_features)
        )
        self.unit = UnitNorm()
        self.out_features = out_features

    def forward(
        self, patches: Float[Tensor, "b c p q"], location: Float[Tensor, "b 2"]
    ) -> Float[Tensor, "b d"]:
        """The feature of each patch at its location (y, x), each from 0 to 1 over the image."""
        feature: Tensor = self.unit(self.network(patches) + self.location(location))
        return feature
