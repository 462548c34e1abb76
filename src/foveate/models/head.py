"""The classifier on z."""

from __future__ import annotations

from torch import Tensor, nn

from foveate.types import Float


class ScaledLinear(nn.Linear):
    """A linear classifier whose scores are scaled up, for features of norm 1.

    z is a weighted mean of unit vectors, so a plain linear layer begins with scores near 0, and
    both its gradient and the one it hands on to the attention are small until its weights have
    grown. Scores `scale` times as large learn sooner.

    Args:
        in_features: the length of z.
        out_features: how many classes.
        scale: what the scores are multiplied by.
    """

    def __init__(self, in_features: int, out_features: int, scale: float = 8.0) -> None:
        super().__init__(in_features, out_features)
        self.scale = scale

    def forward(self, z: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """The score of each class."""
        return self.scale * super().forward(z)
