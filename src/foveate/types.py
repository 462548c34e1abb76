"""The records that pass between the rooms, and the words their shapes are written in.

Shapes are jaxtyping annotations over one alphabet: b batch, n draws, h w cells, c channels, p q
patch, d feature, k classes (in `sampling/`, k is the flattened cells). They are checked in tests
only; jaxtyping is no dependency of the package, so without it the annotations read as plain types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int64, Num, UInt8
else:
    try:
        from jaxtyping import Bool, Float, Float64, Int64, Num, UInt8
    except ModuleNotFoundError:

        class _Unshaped:
            def __class_getitem__(cls, type_and_shape):
                return type_and_shape[0]

        Bool = Float = Float64 = Int64 = Num = UInt8 = _Unshaped

__all__ = [
    "Bool",
    "Draw",
    "Extents",
    "Float",
    "Float64",
    "Glance",
    "Int64",
    "Num",
    "Prediction",
    "Size",
    "UInt8",
]

Size = tuple[int, int]
"""(height, width), or (rows, columns)."""

Extents = list[Size] | Int64[Tensor, "b 2"]
"""(height, width) of each image of a batch, as the host knows them or as a device does."""


@dataclass(frozen=True)
class Draw:
    """The sampled cells of a batch of attention maps.

    Attributes:
        index: the drawn cells, as indices into the flattened cells.
        weight: what each drawn cell counts for, without gradient, so that
            E[ sum_n weight * f[index] ] = sum_k a_k f_k.
    """

    index: Int64[Tensor, "b n"]
    weight: Float[Tensor, "b n"]


@dataclass(frozen=True)
class Glance:
    """Where a model decided to look, some time before it does.

    Attributes:
        log_attention: the log-probabilities that the draw was made from, without gradient.
        draw: the drawn cells, and their weights for that attention.
        yx_level0: top-left corner (y, x) of each patch, in pixels of the full-resolution image.
    """

    log_attention: Float[Tensor, "b h w"]
    draw: Draw
    yx_level0: Int64[Tensor, "b n 2"]


@dataclass(frozen=True)
class Prediction:
    """What every model returns; a model that does not attend or draw leaves those fields None.

    Attributes:
        logits: unnormalised class scores.
        log_attention: normalised log-probabilities over the cells.
        draw: the cells that were looked at, and their weights.
        yx_level0: top-left corner (y, x) of each patch, in pixels of the full-resolution image.
        patches: the patches as they were read, in the image's own type.
    """

    logits: Float[Tensor, "b k"]
    log_attention: Float[Tensor, "b h w"] | None = None
    draw: Draw | None = None
    yx_level0: Int64[Tensor, "b n 2"] | None = None
    patches: Num[Tensor, "b n c p q"] | None = None
