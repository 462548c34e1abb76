"""Decoded tiles that may be needed again: one cache for each process, limited in bytes."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

import numpy as np

from foveate.errors import InputError
from foveate.types import UInt8

_VARIABLE = "FOVEATE_CACHE_MB"
_DEFAULT_MB = 256

TileKey = tuple[str, int, int, int, int]
"""A file's key, the channels that are asked for, level, row and column."""


class TileCache:
    """The tiles that were used last.

    Args:
        limit: says how many bytes are kept at most; 0 keeps none.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self.limit = limit
        self.forget()

    def get(self, key: TileKey) -> UInt8[np.ndarray, "h w c"] | None:
        """A tile, if it is here."""
        with self._lock:
            tile = self._tiles.get(key)
            if tile is not None:
                self._tiles.move_to_end(key)
            return tile

    def put(self, key: TileKey, tile: UInt8[np.ndarray, "h w c"]) -> None:
        """Keep a tile, and drop those that were not used for longest; nobody writes to it."""
        if tile.nbytes > self.limit():
            return
        with self._lock:
            replaced = self._tiles.pop(key, None)
            self._bytes += tile.nbytes - (0 if replaced is None else replaced.nbytes)
            self._tiles[key] = tile
        self.shrink()

    def shrink(self) -> None:
        """Drop what is beyond the limit."""
        limit = self.limit()
        with self._lock:
            while self._bytes > limit:
                self._bytes -= self._tiles.popitem(last=False)[1].nbytes

    def drop(self, file: str) -> None:
        """Drop the tiles of a file."""
        with self._lock:
            for key in [key for key in self._tiles if key[0] == file]:
                self._bytes -= self._tiles.pop(key).nbytes

    def forget(self) -> None:
        """Start anew, as after a fork, where another thread may have held the lock."""
        self._lock = threading.Lock()
        self._tiles: OrderedDict[TileKey, np.ndarray] = OrderedDict()
        self._bytes = 0

    def __iter__(self) -> Iterator[TileKey]:
        return iter(list(self._tiles))

    @property
    def bytes(self) -> int:
        """How many bytes are kept."""
        return self._bytes


def set_cache_limit(megabytes: int) -> None:
    """Say how many megabytes of decoded tiles are kept, in this process and those that it starts.

    Args:
        megabytes: the most that each process keeps, 256 at first; 0 keeps none. The environment
            variable FOVEATE_CACHE_MB says the same. An image that is decoded as a whole, such as
            a JPEG, is kept only if it fits, and otherwise decoded anew for each call.
    """
    if megabytes < 0:
        raise InputError(f"a cache of {megabytes} MB can not be; pass 0 to keep nothing")
    os.environ[_VARIABLE] = str(megabytes)
    TILES.shrink()


def _stated_limit() -> int:
    stated = os.environ.get(_VARIABLE, str(_DEFAULT_MB))
    if not stated.isdecimal():
        raise InputError(f"{_VARIABLE} must be a whole number of megabytes, but is {stated!r}")
    return int(stated) * 2**20


TILES = TileCache(_stated_limit)
"""The cache of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TILES.forget)
