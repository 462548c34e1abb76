"""Memory that several processes share: what one writes there, the others see without a copy."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from foveate.types import UInt8

_PAGE = mmap.ALLOCATIONGRANULARITY


class Desk:
    """Shared memory that grows as it is needed, and is gone with the last process that has it.

    Args:
        handle: that of a desk of another process, which this one has inherited; None for a new one.
    """

    def __init__(self, handle: int | None = None) -> None:
        self.handle = _new_file() if handle is None else handle
        self._memory: mmap.mmap | None = None
        self._size = 0
        self._free: dict[int, list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    @contextmanager
    def room(self, nbytes: int) -> Iterator[int]:
        """Some bytes that nobody else is given meanwhile.

        Yields:
            Where they begin.
        """
        pages = -(-nbytes // _PAGE)
        with self._lock:
            free = self._free[pages]
            if not free:
                free.append(self._size)
                self._size += pages * _PAGE
                os.ftruncate(self.handle, self._size)
            start = free.pop()
        try:
            yield start
        finally:
            with self._lock:
                free.append(start)

    def view(self, start: int, shape: tuple[int, ...]) -> UInt8[np.ndarray, "..."]:
        """What lies there, to read and to write."""
        count = math.prod(shape)
        with self._lock:
            if self._memory is None or len(self._memory) < start + count:
                # Views of the smaller one keep it.
                self._memory = mmap.mmap(self.handle, os.fstat(self.handle).st_size)
            memory = self._memory
        return np.frombuffer(memory, np.uint8, count, start).reshape(shape)

    def close(self) -> None:
        """Let go of it."""
        self._memory = None
        os.close(self.handle)


def _new_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("foveate")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
