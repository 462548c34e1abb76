"""The files that are open: a bounded number in each process, the least recently used closed first.

A file is closed only when nobody reads it any more.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foveate.images.files.forks import UNDISTURBED
from foveate.images.formats.reader import Reader

_LIMIT = 64


class _Handle:
    """An open file, and how many use it."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.reader: Reader | None = None
        self.users = 0
        self.unwanted = False


class Handles:
    """Open files, by key.

    Args:
        limit: how many stay open while nobody uses them.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self.limit = limit
        self._abandoned: list[object] = []
        self._start()

    @contextmanager
    def borrow(self, key: str, opening: Callable[[], Reader]) -> Iterator[Reader]:
        """A file's reader, opened if it is not; it stays open while it is borrowed."""
        with UNDISTURBED:
            handle = self._take(key)
            try:
                if handle.reader is None:
                    with handle.opening:
                        if handle.reader is None:
                            handle.reader = opening()
                yield handle.reader
            finally:
                self._give_back(key, handle)

    def put(self, key: str, reader: Reader) -> None:
        """Keep a file that is already open, or close it if it is here."""
        handle = self._take(key)
        with handle.opening:
            if handle.reader is None:
                handle.reader = reader
            else:
                reader.close()
        self._give_back(key, handle)

    def close(self, key: str) -> None:
        """Close a file, as soon as nobody uses it."""
        with UNDISTURBED, self._lock:
            handle = self._open.pop(key, None)
            if handle is not None:
                self._discard(handle)

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def forget(self) -> None:
        """Start anew after a fork: what the parent opened is the parent's."""
        # To close it here would change nothing for the parent, and not every library can.
        self._abandoned.append(self._open)
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._open: OrderedDict[str, _Handle] = OrderedDict()

    def _take(self, key: str) -> _Handle:
        with self._lock:
            handle = self._open.get(key)
            if handle is None:
                handle = self._open[key] = _Handle()
            self._open.move_to_end(key)
            handle.users += 1
            if len(self._open) > self.limit:
                idle = [other for other, opened in self._open.items() if not opened.users]
                for other in idle[: len(self._open) - self.limit]:
                    self._discard(self._open.pop(other))
            return handle

    def _give_back(self, key: str, handle: _Handle) -> None:
        with self._lock:
            handle.users -= 1
            if handle.unwanted and not handle.users:
                self._discard(handle)
            elif handle.reader is None and not handle.users and self._open.get(key) is handle:
                del self._open[key]  # it could not be opened

    def _discard(self, handle: _Handle) -> None:
        handle.unwanted = True
        if handle.reader is not None and not handle.users:
            handle.reader.close()
            handle.reader = None


HANDLES = Handles()
"""The files that this process has open."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HANDLES.forget)
