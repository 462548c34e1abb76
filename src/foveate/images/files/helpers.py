"""Processes that read patches of files, so that Python's lock is left to whoever trains.

Threads decode at the same time, but around each decoding they wait for Python's lock, and so does
the thread that launches kernels: on a machine of many cores that costs more than the decoding.

A helper gets one message for each batch, writes the patches to memory that it shares with whoever
asked, and says so. Several batches may be on their way; they are answered in order.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe

import numpy as np

from foveate.errors import FoveateError, InputError
from foveate.images.files.desk import Desk
from foveate.images.files.tile_cache import TILES
from foveate.images.files.tiled_file import TiledFile
from foveate.types import Size, UInt8

_ALONE = {
    "FOVEATE_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
"""Decoding is all that they do: each in one thread, so that they can be forked, and no GPU."""

_KNOWN = 2**15
"""Files that are kept as they travel; half a kilobyte each."""

Corners = list[list[int]]
"""The corners (y, x) of patches of a file."""

Job = tuple[bytes, Corners, int]
"""A file, pickled; what to read of it; and where in the shared memory that goes."""


class Helper:
    """Another process, as seen from this one.

    Args:
        connection: this end of the connection to it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def is_ready(self) -> bool:
        """Whether it has said that it is there; waits for nothing."""
        with suppress(EOFError, OSError):
            return self._connection.poll() and not self._connection.recv_bytes()
        return False

    def send(self, jobs: list[Job], size: Size) -> None:
        """Ask for patches of files."""
        self._connection.send_bytes(pickle.dumps((jobs, size), pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Exception | None:
        """Wait until all of them are there; or what went wrong."""
        try:
            failure = self._connection.recv_bytes()
        except (EOFError, OSError):
            return FoveateError(
                "a process that reads files has ended; if memory is short, use fewer (--readers)"
            )
        return pickle.loads(failure) if failure else None

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()


class Helpers:
    """Several of them; each reads the files that it has read before, as far as that is fair.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        pairs = [Pipe() for _ in range(count)]
        own = {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            # What this process may keep, they share: it will read no more.
            "FOVEATE_CACHE_MB": str(TILES.limit() // 2**20 // count),
        }
        self._desk = Desk()
        handles = [self._desk.handle, *(theirs.fileno() for _, theirs in pairs)]
        # Not a multiprocessing.Process: that would run the user's script once more in each of them.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "foveate.images.files.helper", *map(str, handles)],
            env={**os.environ, **_ALONE, **own},
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for this process to deal with
        )
        for _, theirs in pairs:
            theirs.close()
        self._helpers = [Helper(ours) for ours, _ in pairs]
        self._starting = list(self._helpers)
        self._reads: dict[str, int] = {}
        self._known: dict[int, tuple[TiledFile, bytes]] = {}
        self._sending = threading.Lock()
        self._turn = threading.Condition()
        self._sent = self._answered = 0

    def are_ready(self) -> bool:
        """Whether all have started; waits for nothing."""
        if self._starting:
            with self._sending:
                self._starting = [one for one in self._starting if not one.is_ready()]
        return not self._starting

    def read(
        self,
        files: Sequence[TiledFile],
        corners: Sequence[Corners],
        rooms: UInt8[np.ndarray, "b n p q c"],
    ) -> None:
        """Read patches of several files.

        Args:
            files: the files.
            corners: of the patches of each, in pixels of level 0.
            rooms: where the patches go.

        Raises:
            DataError: if a file is missing or damaged.
        """
        with self._desk.room(rooms.nbytes) as start:
            errors = self._read(files, corners, rooms, start)
            if not errors:
                np.copyto(rooms, self._desk.view(start, rooms.shape))
        if errors:
            raise errors[0]

    def _read(
        self,
        files: Sequence[TiledFile],
        corners: Sequence[Corners],
        rooms: UInt8[np.ndarray, "b n p q c"],
        start: int,
    ) -> list[Exception]:
        """Have patches read to shared memory, and say what went wrong."""
        each, size = rooms[:1].nbytes, (rooms.shape[2], rooms.shape[3])
        with self._sending:
            shares = self._shares([file.key for file in files])
            number, self._sent = self._sent, self._sent + 1
            for helper, share in shares.items():
                jobs = [(self._pickled(files[i]), corners[i], start + i * each) for i in share]
                with suppress(OSError):  # who receives will say so
                    self._helpers[helper].send(jobs, size)
        with self._turn:
            self._turn.wait_for(lambda: self._answered == number)
        try:
            answers = [self._helpers[helper].receive() for helper in shares]
        finally:
            with self._turn:
                self._answered += 1
                self._turn.notify_all()
        return [answer for answer in answers if answer is not None]

    def close(self) -> None:
        """End them: there is nothing that they could leave undone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for helper in self._helpers:
            helper.close()
        self._desk.close()

    def _pickled(self, file: TiledFile) -> bytes:
        """A file as it travels, which takes as long to make as all else that is sent."""
        known = self._known.get(id(file))
        if known is None:
            known = (file, pickle.dumps(file, pickle.HIGHEST_PROTOCOL))
            if len(self._known) < _KNOWN:
                self._known[id(file)] = known  # with the file, so that no other gets its number
        return known[1]

    def _shares(self, keys: list[str]) -> dict[int, list[int]]:
        """Which of the files each helper reads: no more than its share, and what it knows first."""
        count = len(self._helpers)
        most = -(-len(keys) // count)
        shares: dict[int, list[int]] = {}
        strangers = []
        for i, key in enumerate(keys):
            helper = self._reads.get(key)
            if helper is not None and len(shares.get(helper, ())) < most:
                shares.setdefault(helper, []).append(i)
            else:
                strangers.append(i)
        helper = 0
        for i in strangers:
            while len(shares.get(helper, ())) >= most:
                helper += 1
            shares.setdefault(helper, []).append(i)
            self._reads[keys[i]] = helper
        return shares


_count = 0
_helpers: Helpers | None = None
_making = threading.Lock()


@contextmanager
def reading_processes(count: int) -> Iterator[None]:
    """While it lasts, patches of files are read by other processes.

    They start when files are first read; until all have started, threads read.

    Args:
        count: how many; 0 for none.

    Raises:
        InputError: for any on a system that is not like Unix.
    """
    if count > 0 and os.name != "posix":
        raise InputError("only on Linux and macOS can processes read files: set readers to 0")
    global _count, _helpers
    before, _count = _count, count
    try:
        yield
    finally:
        with _making:
            _count = before
            ending, _helpers = _helpers, None
        if ending is not None:
            ending.close()


def helpers() -> Helpers | None:
    """The processes that read for this one, if there are to be any and all have started."""
    global _helpers
    with _making:
        if _helpers is None and _count > 0:
            _helpers = Helpers(_count)
        others = _helpers
    return others if others is not None and others.are_ready() else None


def _forget() -> None:
    """After a fork, they are the parent's."""
    global _count, _helpers, _making
    _count, _helpers, _making = 0, None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
