"""What a network takes: where, in which type, and how it lies in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.types import Float, Num


@dataclass(frozen=True)
class Form:
    """The form of a network's inputs.

    Attributes:
        device: where they are.
        dtype: their type.
        channels_last: whether the channels of a pixel lie together in memory.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    channels_last: bool = False

    @property
    def memory_format(self) -> torch.memory_format:
        """The layout, as PyTorch names it."""
        return torch.channels_last if self.channels_last else torch.contiguous_format

    def cast(self, pixels: Num[Tensor, "m c p q"]) -> Float[Tensor, "m c p q"]:
        """Pixels as a network takes them; uint8 becomes 0 to 1.

        Example:
            >>> pixels = torch.full((1, 1, 1, 2), 51, dtype=torch.uint8)
            >>> Form(torch.device("cpu"), torch.float64).cast(pixels)
            tensor([[[[0.2000, 0.2000]]]], dtype=torch.float64)
        """
        floats = pixels.to(self.device, non_blocking=True).to(self.dtype)
        colours = floats / 255 if pixels.dtype == torch.uint8 else floats
        return (
            colours.contiguous(memory_format=self.memory_format) if self.channels_last else colours
        )
