"""An image file as tiles: opened when it is read, in whatever process that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foveate.errors import DataError, FoveateError
from foveate.images.files.handles import HANDLES
from foveate.images.files.threads import thread_count
from foveate.images.files.tile_cache import TILES
from foveate.images.formats.backends import open_reader
from foveate.images.formats.colours import to_channels
from foveate.images.formats.damage import damaged
from foveate.images.formats.layout import Layout
from foveate.images.formats.reader import Reader
from foveate.images.sources.location import Location
from foveate.types import Size, UInt8

_REMOTE_THREADS = 16
"""Threads that wait for remote files, however few may decode."""


@dataclass(frozen=True)
class TiledFile:
    """A file and what is known of it; it pickles, and holds nothing open.

    Attributes:
        location: where the file is.
        backend: who reads it.
        layout: what is known of it.
        channels: how many channels are asked for.
    """

    location: Location
    backend: str
    layout: Layout
    channels: int

    @cached_property
    def key(self) -> str:
        """What tells this file from every other."""
        return f"{self.backend}|{self.location.key}"

    def tile(self, level: int, row: int, column: int, keep: bool) -> UInt8[np.ndarray, "h w c"]:
        """A tile of a level, decoded if it is not in the cache; not to be written to.

        It has 1 channel if the file is grey, also where 3 are asked for: copying repeats it.

        Args:
            level: the level.
            row: the tile's row.
            column: its column.
            keep: whether to keep it for the next who asks.

        Raises:
            DataError: if the file is missing or damaged.
        """
        key = (self.key, self.channels, level, row, column)
        tile = TILES.get(key)
        if tile is None:
            with HANDLES.borrow(self.key, self._open) as reader:
                tile = reader.tile(level, row, column)
            self._check(tile.shape, level, row, column)
            tile = to_channels(tile, self.channels)
            if keep:
                TILES.put(key, tile)
        return tile

    def shrunk(self, size: Size) -> tuple[UInt8[np.ndarray, "h w c"], tuple[float, float]]:
        """The whole image at a lower resolution, and its true size; see `Reader.shrunk`."""
        with HANDLES.borrow(self.key, self._open) as reader:
            pixels, extent = reader.shrunk(size)
        return to_channels(pixels, self.channels), extent

    def keep_open(self, reader: Reader) -> None:
        """Have a reader that is already open used from now on."""
        HANDLES.put(self.key, reader)

    def close(self) -> None:
        """Let go of the file, and of what was read of it."""
        HANDLES.close(self.key)
        TILES.drop(self.key)

    def _open(self) -> Reader:
        try:
            reader = open_reader(self.location, self.backend)
        except (FoveateError, MemoryError):
            raise
        except Exception as error:
            raise damaged(self.location.name, error) from error
        if reader.layout != self.layout:
            reader.close()
            raise DataError(
                f"cannot read {self.location.name}: it was changed since it was opened; "
                "open it again"
            )
        return reader

    def _check(self, shape: tuple[int, ...], level: int, row: int, column: int) -> None:
        """Raise if a tile does not reach as far as it should."""
        (height, width), (rows, columns) = (
            self.layout.levels[level].size,
            self.layout.levels[level].tile,
        )
        wanted = min(rows, height - row * rows), min(columns, width - column * columns)
        if shape[0] < wanted[0] or shape[1] < wanted[1] or shape[2] != self.layout.channels:
            raise DataError(
                f"cannot read tile ({row}, {column}) of level {level} of {self.location.name}: it "
                f"should have {wanted[0]} x {wanted[1]} pixels of {self.layout.channels} channels, "
                f"but is {tuple(shape)}; replace the file or leave it out"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "key"}


def threads_for(files: Sequence[TiledFile]) -> int:
    """How many threads read these files."""
    remote = any(file.location.is_remote for file in files)
    return max(thread_count(), _REMOTE_THREADS) if remote else thread_count()
