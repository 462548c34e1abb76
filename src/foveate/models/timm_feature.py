"""Any backbone of the timm library as a feature network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foveate.errors import MissingExtraError
from foveate.models.features import UnitNorm
from foveate.types import Float


class TimmFeature(nn.Module):
    """A timm backbone whose pooled output, scaled to norm 1, is the feature.

    Patches are expected from 0 to 1; they are shifted and scaled as the backbone's weights expect.

    Args:
        name: the backbone, as `timm.create_model` knows it.
        in_channels: channels of the patches.
        pretrained: whether to load timm's weights.
        options: passed on to `timm.create_model`.

    Raises:
        MissingExtraError: where timm is not installed.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, name: str, in_channels: int = 3, pretrained: bool = False, **options: Any
    ) -> None:
        super().__init__()
        try:
            import timm
        except ImportError as error:
            raise MissingExtraError(
                f"TimmFeature({name!r}) needs timm, which did not import ({error}); "
                "install it with: pip install 'foveate[timm]'"
            ) from error
        self.backbone = timm.create_model(
            name, pretrained=pretrained, in_chans=in_channels, num_classes=0, **options
        )
        for statistic in ("mean", "std"):
            value = torch.tensor(self.backbone.pretrained_cfg[statistic])
            # timm sums a backbone's colour filters for other channels: so they share one statistic.
            value = value if len(value) == in_channels else value.mean().expand(in_channels)
            self.register_buffer(statistic, value.reshape(-1, 1, 1).clone(), persistent=False)
        self.unit = UnitNorm()
        self.out_features: int = self.backbone.num_features

    def forward(self, patches: Float[Tensor, "b c p q"]) -> Float[Tensor, "b d"]:
        """The feature of each patch."""
        feature: Tensor = self.unit(self.backbone((patches - self.mean) / self.std))
        return feature
