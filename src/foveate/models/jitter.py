"""Patches that are turned, scaled and slanted a little at random before a network sees them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sampling.chance import uniform
from foveate.types import Float


class Jitter(nn.Module):
    """Bends each patch in a way of its own, in training; models do so before they look at them.

    Unlike a variation of whole images, it costs nothing where images are read, and n patches of an
    image vary n ways. Attention does not see it.

    Args:
        amount: how far patches are turned, in radians, and scaled and slanted, as shares.

    Example:
        >>> patches = torch.rand(4, 3, 32, 32)
        >>> torch.equal(Jitter(0.2).eval()(patches), patches)
        True
    """

    def __init__(self, amount: float) -> None:
        super().__init__()
        self.amount = amount

    def forward(
        self, patches: Float[Tensor, "b c p q"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "b c p q"]:
        """The patches, bent about their centres; 0 where they show what was not read.

        Args:
            patches: the patches, those of an image together.
            generator: where chance comes from.
        """
        if not self.training or self.amount == 0:
            return patches
        chance = self.amount * (2 * uniform((len(patches), 3), patches, generator).float() - 1)
        turn, scale, slant = chance[:, 0], chance[:, 1].exp(), chance[:, 2]
        cosine, sine = scale * turn.cos(), scale * turn.sin()
        still = torch.zeros_like(turn)
        rows = [
            torch.stack([cosine, slant - sine, still], 1),
            torch.stack([sine, cosine, still], 1),
        ]
        grid = F.affine_grid(torch.stack(rows, 1), list(patches.shape), align_corners=False)
        bent = F.grid_sample(patches.float(), grid, align_corners=False)
        return bent.to(patches.dtype)

    def extra_repr(self) -> str:
        """Its amount."""
        return str(self.amount)
