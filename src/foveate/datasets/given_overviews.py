"""Overviews that were read from files, for images that are in memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foveate.images import KeptOverviews
from foveate.types import Int64, Num, Size


class GivenOverviews(KeptOverviews):
    """Overviews of one size that are known, with a copy on each device that asks for them.

    A decoder's own overview of a file is not to the last bit what resampling its pixels gives. What
    a model is trained on must be what it will see when it is shown a file.

    Args:
        overviews: those of all images.
    """

    def __init__(self, overviews: Num[Tensor, "N c h w"]) -> None:
        super().__init__(len(overviews))
        self._given = {overviews.device: overviews}

    def get(
        self,
        index: Int64[Tensor, " b"],
        size: Size,
        device: torch.device,
        make: Callable[[], Num[Tensor, "b c h w"]],
    ) -> Num[Tensor, "b c h w"]:
        """See `KeptOverviews.get`; those of another size are made."""
        given = next(iter(self._given.values()))
        if given.shape[2:] != size:
            return super().get(index, size, device, make)
        if device not in self._given:
            self._given[device] = given.to(device)
        return self._given[device][index.to(device, non_blocking=True)]
