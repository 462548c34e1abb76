"""Overviews that were read from files, for images that are in memory."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images import KeptOverviews, Make, Stack
from foveate.types import Int64, Num, Size

_SHARE = 0.25
"""Of a GPU's free memory that the overviews of images in files may take."""


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
        self._fit: dict[torch.device, bool] = {}

    def stack(
        self,
        where: Int64[Tensor, " b"] | None,
        index: Int64[Tensor, " b"],
        size: Size,
        make: Make,
        on_host: bool = False,
    ) -> Stack:
        """See `KeptOverviews.stack`; those of another size are made."""
        if self.size != size:
            return super().stack(where, index, size, make, on_host)
        return Stack(self.on(index.device), index)

    @property
    def size(self) -> Size:
        """Their height and width."""
        height, width = next(iter(self._given.values())).shape[2:]
        return height, width

    def on(self, device: torch.device) -> Num[Tensor, "N c h w"]:
        """All of them, on a device."""
        if device not in self._given:
            self._given[device] = next(iter(self._given.values())).to(device)
        return self._given[device]

    def fit(self, device: torch.device) -> bool:
        """Whether a device had room for them when that was first asked."""
        if device not in self._fit:
            nbytes = next(iter(self._given.values())).nbytes
            is_gpu = device.type == "cuda" and device not in self._given
            room = _SHARE * torch.cuda.mem_get_info(device)[0] if is_gpu else nbytes
            self._fit[device] = nbytes <= room
        return self._fit[device]
