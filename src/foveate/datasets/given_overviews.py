"""Overviews that were read from files, for images that are in memory."""

from __future__ import annotations

from torch import Tensor

from foveate.images import KeptOverviews, Make, Stack
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

    def stack(
        self,
        where: Int64[Tensor, " b"] | None,
        index: Int64[Tensor, " b"],
        size: Size,
        make: Make,
        on_host: bool = False,
    ) -> Stack:
        """See `KeptOverviews.stack`; those of another size are made."""
        given = next(iter(self._given.values()))
        if given.shape[2:] != size:
            return super().stack(where, index, size, make, on_host)
        if index.device not in self._given:
            self._given[index.device] = given.to(index.device)
        return Stack(self._given[index.device], index)
