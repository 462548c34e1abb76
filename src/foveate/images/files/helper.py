"""What processes do that read patches for another: `python -m foveate.images.files.helper 5 6 7`.

The arguments are the memory that they share with it, and connections, one for each of them. What
they need is imported once, and then they are forked. A process ends when the other end of its
connection is gone, that is, with whom it reads for.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from foveate.errors import FoveateError
from foveate.images.files.desk import Desk
from foveate.images.files.rectangles import Rectangle, read_rectangles
from foveate.images.files.tile_cache import tiles_for_training
from foveate.images.files.tiled_file import TiledFile

_NICENESS = 5
"""Whoever trains launches the work of a GPU, and must not wait for a core."""


def serve(connection: Connection, desk: Desk) -> None:
    """Read what is asked for until nobody can ask any more.

    An answer is empty, or it says what went wrong. The first one says that this process is there.

    Raises:
        EOFError: then.
    """
    connection.send_bytes(b"")
    while True:
        jobs, size = pickle.loads(connection.recv_bytes())
        try:
            for pickled, corners, start in jobs:
                file = _file(pickled)
                rooms = desk.view(start, (len(corners), *size, file.channels))
                rooms[...] = 0
                pairs = zip(corners, rooms, strict=True)
                read_rectangles([Rectangle(file, 0, (y, x), room) for (y, x), room in pairs])
        except Exception as error:
            connection.send_bytes(_packed(error))
        else:
            connection.send_bytes(b"")


@functools.lru_cache(maxsize=2**10)
def _file(pickled: bytes) -> TiledFile:
    file: TiledFile = pickle.loads(pickled)
    return file


def _packed(error: Exception) -> bytes:
    """An error as it travels; what can not, is told."""
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:  # it holds an open file, or is made in a way of its own
        return pickle.dumps(FoveateError(f"{type(error).__name__}: {error}"))
    return packed


def main(desk: int, handles: Sequence[int]) -> None:
    """Fork a process for each connection, and wait until all have ended."""
    os.nice(_NICENESS)
    for handle in handles:
        if os.fork() == 0:
            # Or nobody would notice that another has ended.
            for other in set(handles) - {handle}:
                os.close(other)
            with (
                suppress(EOFError, OSError),
                Connection(handle) as connection,
                tiles_for_training(0),
            ):
                serve(connection, Desk(desk))
            os._exit(0)
    for handle in handles:
        os.close(handle)
    for _ in handles:
        os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(handle) for handle in sys.argv[2:]])
