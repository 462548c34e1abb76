"""Messages between a process and those that read for it: whether it is an error, and bytes.

`multiprocessing.connection` does the same in twice the time of whoever receives: it reads in more
pieces, lets go of Python's lock for each, and copies what it has read to where it is wanted.
"""

from __future__ import annotations

import socket
import struct

HEADER = struct.Struct("!BQ")
"""Whether a message is an error, and how many bytes follow."""
_SMALL = 2**16
"""Bytes that are sent together with their header."""


def send(connection: socket.socket, content: bytes | memoryview, failed: bool = False) -> None:
    """Send a message."""
    length = content.nbytes if isinstance(content, memoryview) else len(content)
    header = HEADER.pack(failed, length)
    if length < _SMALL:
        connection.sendall(header + bytes(content))
    else:
        connection.sendall(header)
        connection.sendall(content)


def receive(connection: socket.socket, length: int) -> bytearray:
    """Wait for so many bytes."""
    content = bytearray(length)
    fill(connection, memoryview(content))
    return content


def fill(connection: socket.socket, room: memoryview) -> None:
    """Wait for as many bytes as there is room for.

    Raises:
        EOFError: if the other end is gone.
    """
    while room.nbytes:
        count = connection.recv_into(room, 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        room = room[count:]
