"""Overviews that are kept once they have been made, while they are small enough."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foveate.images.memory.stack import Stack
from foveate.types import Int64, Num, Size

LIMIT = 2**28
"""Bytes that the overviews of one size may take for good; larger ones are made each time."""

_AT_ONCE = 32
"""Images whose overviews are made together where all are made."""

Make = Callable[[Tensor, Size, torch.device], Tensor]
"""Makes the overviews of some images, of a size, for a device."""


class KeptOverviews:
    """The overviews of a data set's images, each made once for each size and device.

    Args:
        count: how many images there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._kept: dict[tuple[Size, torch.device], tuple[Tensor, Tensor] | None] = {}

    def stack(
        self,
        where: Int64[Tensor, " b"] | None,
        index: Int64[Tensor, " b"],
        size: Size,
        make: Make,
        on_host: bool = False,
    ) -> Stack:
        """The overviews of some images.

        Args:
            where: which images, on the host; None if only the device knows, as in the recording
                of a step. Then all are made, if they can be kept.
            index: the same, where they are wanted.
            size: height and width of the overviews.
            make: makes them.
            on_host: whether those that are too large are kept in pinned host memory, rather than
                made each time.
        """
        key = (size, index.device)
        # What is first asked for in inference mode may be added to outside of it.
        with torch.inference_mode(False):
            if key not in self._kept:
                one = make(index[:1], size, index.device)
                self._kept[key] = self._make_room(one, on_host)
            room = self._kept[key]
            if room is None:
                return Stack(make(index, size, index.device))
            kept, known = room
            wanted = torch.arange(self.count) if where is None else where
            missing = wanted[~known[wanted]]
            for some in missing.split(_AT_ONCE) if len(missing) else ():
                made = make(some.to(index.device), size, index.device)
                kept[some.to(kept.device)] = made.to(kept.device)
            known[missing] = True
        return Stack(kept, index)

    def _make_room(
        self, one: Num[Tensor, "1 c h w"], on_host: bool
    ) -> tuple[Tensor, Tensor] | None:
        """Room for overviews like this one, and which of them are known; None for large ones."""
        too_large = one.nbytes * self.count > LIMIT
        if too_large and not on_host:
            return None
        device = torch.device("cpu") if too_large else one.device
        pinned = too_large and torch.cuda.is_available()
        room = one.new_empty(self.count, *one.shape[1:], device=device, pin_memory=pinned)
        return room, torch.zeros(self.count, dtype=torch.bool)

    def __getstate__(self) -> dict[str, object]:
        # What can be made again does not travel to other processes.
        return self.__dict__ | {"_kept": {}}
