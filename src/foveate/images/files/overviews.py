"""Overviews of many files at once, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.files.shrinking import Shrinking
from foveate.images.files.threads import ahead
from foveate.images.files.tiled_file import TiledFile, threads_for
from foveate.types import Float, Size, UInt8


@dataclass(frozen=True)
class _Piece:
    """A tile that the overview of an image is made of.

    Attributes:
        image: which image.
        file: its file.
        shrinking: from the tile's level to the overview.
        level: the tile's level.
        place: its row and column.
    """

    image: int
    file: TiledFile
    shrinking: Shrinking
    level: int
    place: tuple[int, int]

    def shrink(self) -> list[tuple[slice, slice, Float[np.ndarray, "i j c"]]]:
        """Decode it; what it adds to the overview, and where."""
        level, (row, column) = self.file.layout.levels[self.level], self.place
        # The tiles of a large level would only push others out of the cache.
        pixels = self.file.tile(self.level, row, column, keep=level.grid == (1, 1))
        return list(self.shrinking.parts(pixels, row * level.tile[0], column * level.tile[1]))


@dataclass(frozen=True)
class _Whole:
    """An image whose decoder gives less than the whole; its overview is made of one piece."""

    image: int
    file: TiledFile
    size: Size

    def shrink(self) -> list[tuple[slice, slice, Float[np.ndarray, "i j c"]]]:
        """Decode it; what it adds to the overview, and where."""
        pixels, extent = self.file.shrunk(self.size)
        whole = (pixels.shape[0], pixels.shape[1])
        return list(Shrinking(whole, self.size, extent).parts(pixels))


def read_overviews(files: Sequence[TiledFile], size: Size) -> list[UInt8[Tensor, "c h w"]]:
    """Each file at a low resolution.

    It is made of the coarsest level that has as many pixels, tile by tile, or by a decoder that
    gives less than the whole.

    Raises:
        InputError: for a size without pixels.
        DataError: if a tile is missing or damaged.
    """
    if min(size) < 1:
        raise InputError(f"cannot make an overview of {size} pixels; both sides must be at least 1")
    sums = [
        np.zeros((*size, min(file.channels, file.layout.channels)), np.float32) for file in files
    ]
    pieces = (piece for i, file in enumerate(files) for piece in _pieces(i, file, size))
    for piece, parts in ahead(_shrink, pieces, threads_for(files)):
        for rows, columns, part in parts:
            sums[piece.image][rows, columns] += part
    return [
        _rounded(total).expand(file.channels, *size)
        for total, file in zip(sums, files, strict=True)
    ]


def _pieces(image: int, file: TiledFile, size: Size) -> Iterator[_Piece | _Whole]:
    if file.layout.shrinks:
        yield _Whole(image, file, size)
        return
    level = file.layout.nearest(size)
    height, width = file.layout.levels[level].size
    shrinking = Shrinking((height, width), size, (float(height), float(width)))
    rows, columns = file.layout.levels[level].grid
    for row in range(rows):
        for column in range(columns):
            yield _Piece(image, file, shrinking, level, (row, column))


def _shrink(
    piece: _Piece | _Whole,
) -> list[tuple[slice, slice, Float[np.ndarray, "i j c"]]]:
    return piece.shrink()


def _rounded(overview: Float[np.ndarray, "h w c"]) -> UInt8[Tensor, "c h w"]:
    colours = np.clip(overview + 0.5, 0, 255).astype(np.uint8)
    return torch.from_numpy(colours).permute(2, 0, 1).contiguous()
