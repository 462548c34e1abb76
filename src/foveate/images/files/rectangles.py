"""Rectangles of many files at once.

Reads are sorted by tile: each tile that is needed is decoded once, by whichever thread is free, and
copied to every rectangle that shows a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from foveate.images.files.threads import each
from foveate.images.files.tiled_file import TiledFile, threads_for
from foveate.types import UInt8


@dataclass(frozen=True)
class Rectangle:
    """A part of a file that is asked for, and where it goes.

    Attributes:
        file: the file.
        level: the level to read.
        yx: the corner, in pixels of that level; it may lie outside.
        room: where the pixels go; it is 0 already.
    """

    file: TiledFile
    level: int
    yx: tuple[int, int]
    room: UInt8[np.ndarray, "p q c"]


@dataclass(frozen=True)
class _Tile:
    """A tile that is needed, and the parts of rectangles that its rows and columns fill."""

    file: TiledFile
    level: int
    row: int
    column: int
    parts: list[tuple[UInt8[np.ndarray, "h w c"], slice, slice]] = field(default_factory=list)


def read_rectangles(rectangles: Sequence[Rectangle]) -> None:
    """Read parts of files.

    Raises:
        DataError: if a tile is missing or damaged.
    """
    tiles: dict[tuple[str, int, int, int, int], _Tile] = {}
    for rectangle in rectangles:
        file, level = rectangle.file, rectangle.level
        for row, column, room, rows, columns in _cut(rectangle):
            key = (file.key, file.channels, level, row, column)
            if key not in tiles:
                tiles[key] = _Tile(file, level, row, column)
            tiles[key].parts.append((room, rows, columns))
    files = [rectangle.file for rectangle in rectangles]
    each(_fill, [tiles[key] for key in sorted(tiles)], threads_for(files))


def _cut(
    rectangle: Rectangle,
) -> Iterator[tuple[int, int, UInt8[np.ndarray, "h w c"], slice, slice]]:
    """The tiles that a rectangle touches, and which of their pixels go where."""
    level = rectangle.file.layout.levels[rectangle.level]
    (y, x), room, tile = rectangle.yx, rectangle.room, level.tile
    top, bottom = max(y, 0), min(y + room.shape[0], level.size[0])
    left, right = max(x, 0), min(x + room.shape[1], level.size[1])
    if top >= bottom or left >= right:
        return
    for row in range(top // tile[0], (bottom - 1) // tile[0] + 1):
        first_y = row * tile[0]
        start_y, stop_y = max(top, first_y), min(bottom, first_y + tile[0])
        rows = slice(start_y - first_y, stop_y - first_y)
        for column in range(left // tile[1], (right - 1) // tile[1] + 1):
            first_x = column * tile[1]
            start_x, stop_x = max(left, first_x), min(right, first_x + tile[1])
            columns = slice(start_x - first_x, stop_x - first_x)
            yield (
                row,
                column,
                room[start_y - y : stop_y - y, start_x - x : stop_x - x],
                rows,
                columns,
            )


def _fill(tile: _Tile) -> None:
    pixels = tile.file.tile(tile.level, tile.row, tile.column, keep=True)
    for room, rows, columns in tile.parts:
        room[...] = pixels[rows, columns]
