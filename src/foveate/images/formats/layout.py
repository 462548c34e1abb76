"""What is known of an image file without its pixels."""

from __future__ import annotations

from dataclasses import dataclass

from foveate.images.georeference import Georeference
from foveate.types import Size


@dataclass(frozen=True)
class Level:
    """One resolution of a file, and the tiles in which it is read.

    Attributes:
        size: (height, width) of the level.
        tile: (height, width) of its tiles, those at the right and lower border cut off.
    """

    size: Size
    tile: Size

    @property
    def grid(self) -> Size:
        """How many rows and columns of tiles there are."""
        return -(-self.size[0] // self.tile[0]), -(-self.size[1] // self.tile[1])


@dataclass(frozen=True)
class Layout:
    """A file's levels, and what else it says of itself.

    Attributes:
        levels: its resolutions, finest first.
        channels: 1 for grey, 3 for colour.
        shrinks: whether its decoder can give the whole image at a lower resolution.
        microns_per_pixel: the physical size of a level-0 pixel, if it is known.
        georeference: where on Earth it lies, if it is known.
    """

    levels: tuple[Level, ...]
    channels: int
    shrinks: bool = False
    microns_per_pixel: float | None = None
    georeference: Georeference | None = None

    @property
    def sizes(self) -> tuple[Size, ...]:
        """(height, width) of each level."""
        return tuple(level.size for level in self.levels)

    def nearest(self, size: Size) -> int:
        """The coarsest level that has at least this height and width, or else level 0."""
        large = [i for i, (h, w) in enumerate(self.sizes) if h >= size[0] and w >= size[1]]
        return min(large, key=lambda i: self.sizes[i][0] * self.sizes[i][1], default=0)
