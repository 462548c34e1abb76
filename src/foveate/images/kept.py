"""Overviews that are kept once they have been made, while they are small enough."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foveate.types import Int64, Num, Size

LIMIT = 2**28
"""Bytes that the overviews of one size may take for good; larger ones are made each time."""


class KeptOverviews:
    """The overviews of a data set's images, each made once for each size and device.

    Args:
        count: how many images there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._kept: dict[tuple[Size, torch.device], tuple[Tensor, Tensor]] = {}

    def get(
        self,
        index: Int64[Tensor, " b"],
        size: Size,
        device: torch.device,
        make: Callable[[], Num[Tensor, "b c h w"]],
    ) -> Num[Tensor, "b c h w"]:
        """The overviews of some images.

        Args:
            index: which images, on the host.
            size: height and width of the overviews.
            device: where they are wanted.
            make: makes them, there.
        """
        key = (size, device)
        if key not in self._kept:
            made = make()
            if made[0].nbytes * self.count > LIMIT:
                return made
            kept = made.new_empty(self.count, *made.shape[1:])
            self._kept[key] = (kept, torch.zeros(self.count, dtype=torch.bool))
        kept, known = self._kept[key]
        there = index.to(device)
        if not known[index].all():
            kept[there] = make()
            known[index] = True
        return kept[there]

    def __getstate__(self) -> dict[str, object]:
        # What can be made again does not travel to other processes.
        return self.__dict__ | {"_kept": {}}
