"""What a process does that reads patches for another: `python -m foveate.images.files.helper 5`.

It ends when the other end of its socket is gone, that is, with the process it reads for.
"""

from __future__ import annotations

import pickle
import signal
import socket
import sys
from contextlib import suppress

import numpy as np

from foveate.images.files.helpers import HEADER, receive, send
from foveate.images.files.rectangles import Rectangle, read_rectangles


def serve(connection: socket.socket) -> None:
    """Read what is asked for until nobody can ask any more."""
    connection.sendall(b"\1")
    while True:
        _, length = HEADER.unpack(receive(connection, HEADER.size))
        jobs, size = pickle.loads(receive(connection, length))
        for file, corners in jobs:
            rooms = np.zeros((len(corners), *size, file.channels), np.uint8)
            try:
                pairs = zip(corners, rooms, strict=True)
                read_rectangles([Rectangle(file, 0, (y, x), room) for (y, x), room in pairs])
            except Exception as error:
                send(connection, pickle.dumps(error), failed=True)
            else:
                send(connection, rooms.data.cast("B"))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process decides when to end
    with suppress(EOFError, OSError), socket.socket(fileno=int(sys.argv[1])) as theirs:
        serve(theirs)
