"""Decoded tiles that may be needed again: one cache for each process, limited in bytes."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from foveate.errors import InputError
from foveate.types import UInt8

_VARIABLE = "FOVEATE_CACHE_MB"
_DEFAULT_MB = 256
_ONE_OF = 8
"""Of the tiles that come to a full cache in training, one of so many is kept."""

TileKey = tuple[str, int, int, int, int]
"""A file's key, the channels that are asked for, level, row and column."""


class TileCache:
    """The tiles that were used last.

    Args:
        limit: says how many bytes are kept at most; 0 keeps none.

    Attributes:
        one_of: of the tiles that come when it is full, one of so many is kept. Where all tiles are
            gone through again and again, in any order, those that come push out those that were
            about to be asked for: of a cache with room for half of them, all newcomers leave one
            in seven to be found, and one newcomer of eight leaves three in seven.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self.limit = limit
        self.one_of = 1
        self._newcomers = 0
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
        limit = self.limit()
        if tile.nbytes > limit:
            return
        with self._lock:
            if self._bytes + tile.nbytes > limit and key not in self._tiles:
                self._newcomers += 1
                if self._newcomers % self.one_of:
                    return
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


@contextmanager
def tiles_for_training(room: int) -> Iterator[None]:
    """While it lasts, keep tiles that are read again and again, epoch by epoch.

    Args:
        room: the bytes that there are for them in this process. Nobody else has them: processes
            that it forks have the usual ones. It has no say where less than usual is left, nor
            where FOVEATE_CACHE_MB or `set_cache_limit` says how many are kept.
    """
    global _room
    _room, TILES.one_of = room, _ONE_OF
    try:
        yield
    finally:
        _room, TILES.one_of = 0, 1
        TILES.shrink()


def _stated_limit() -> int:
    stated = os.environ.get(_VARIABLE, "")
    if not stated:
        return max(_room, _DEFAULT_MB * 2**20)
    if not stated.isdecimal():
        raise InputError(f"{_VARIABLE} must be a whole number of megabytes, but is {stated!r}")
    return int(stated) * 2**20


_room = 0


def _forget() -> None:
    global _room
    _room, TILES.one_of = 0, 1
    TILES.forget()


TILES = TileCache(_stated_limit)
"""The cache of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
