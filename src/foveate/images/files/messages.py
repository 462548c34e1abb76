"""Messages between a process and those that read for it: whether it is an error, and bytes.

`multiprocessing.connection` does the same in more pieces, and lets go of Python's lock for each.
"""

from __future__ import annotations

import socket
import struct

_HEADER = struct.Struct("!BQ")
"""Whether a message is an error, and how many bytes follow."""


def send(connection: socket.socket, content: bytes = b"", failed: bool = False) -> None:
    """Send a message."""
    connection.sendall(_HEADER.pack(failed, len(content)) + content)


def receive(connection: socket.socket) -> tuple[bool, bytearray]:
    """Wait for a message.

    Returns:
        Whether it is an error, and what it says.

    Raises:
        EOFError: if the other end is gone.
    """
    failed, length = _HEADER.unpack(_bytes(connection, _HEADER.size))
    return bool(failed), _bytes(connection, length)


def _bytes(connection: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    room = memoryview(content)
    while room.nbytes:
        count = connection.recv_into(room, 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        room = room[count:]
    return content
