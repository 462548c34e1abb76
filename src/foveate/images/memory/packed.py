"""Small tensors that lie together in memory, so that they are copied at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.types import UInt8


@dataclass(frozen=True)
class Packed:
    """Tensors of any types and shapes, in one.

    Attributes:
        data: their bytes; those of larger types come first, so that all are aligned.
        layout: the type and shape of each.

    Example:
        >>> packed = Packed.of([torch.tensor([True]), torch.arange(2)])
        >>> len(packed.data)
        17
        >>> packed.tensors
        [tensor([True]), tensor([0, 1])]
    """

    data: UInt8[Tensor, " _"]
    layout: tuple[tuple[torch.dtype, torch.Size], ...]

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> Packed:
        """Put tensors together."""
        layout = tuple((tensor.dtype, tensor.shape) for tensor in tensors)
        parts = [tensors[i].contiguous().view(-1).view(torch.uint8) for i in _order(layout)]
        return Packed(torch.cat(parts), layout)

    @property
    def tensors(self) -> list[Tensor]:
        """Each of them, not copied."""
        order = _order(self.layout)
        lengths = [dtype.itemsize * shape.numel() for dtype, shape in self.layout]
        ends = itertools.accumulate(lengths[i] for i in order)
        end = dict(zip(order, ends, strict=True))
        return [
            self.data[end[i] - lengths[i] : end[i]].view(dtype).view(shape)
            for i, (dtype, shape) in enumerate(self.layout)
        ]

    def holding(self, data: UInt8[Tensor, " _"]) -> Packed:
        """Other content of the same layout."""
        return Packed(data, self.layout)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Packed:
        """The same on another device, in one copy."""
        return self.holding(self.data.to(device, non_blocking=non_blocking))


def _order(layout: Sequence[tuple[torch.dtype, torch.Size]]) -> list[int]:
    return sorted(range(len(layout)), key=lambda i: -layout[i][0].itemsize)
