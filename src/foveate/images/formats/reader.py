"""What every backend gives: a file's layout, and its tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from foveate.images.formats.layout import Layout
from foveate.types import Size, UInt8


class Reader(ABC):
    """An open file. Its methods may be called from any thread, but not after `close`.

    Attributes:
        layout: what is known of the file.
    """

    layout: Layout

    @abstractmethod
    def tile(self, level: int, row: int, column: int) -> UInt8[np.ndarray, "h w c"]:
        """Decode one tile of a level.

        Returns:
            The tile, or at least as much of it as lies in the image. It is the caller's to keep.

        Raises:
            DataError: if it is missing or damaged.
        """

    def shrunk(self, size: Size) -> tuple[UInt8[np.ndarray, "h w c"], tuple[float, float]]:
        """Decode the whole image at a lower resolution; only where `layout.shrinks`.

        Args:
            size: the height and width that it has at least.

        Returns:
            The image, and its true (height, width): where a decoder rounds up, the last row and
            column are only partly of the image.
        """
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""
