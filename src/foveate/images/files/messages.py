"""Messages between a process and those that read for it: whether it is an error, and bytes.

`multiprocessing.connection` does the same in twice the time of whoever receives: it reads in more
pieces, lets go of Python's lock for each, and copies what it has read to where it is wanted.
"""

from __future__ import annotations

import socket
import struct

_HEADER = struct.Struct("!BQ")
"""Whether a message is an error, and how many bytes follow."""


def send(
    connection: socket.socket,
    content: bytes | memoryview,
    failed: bool = False,
    expected: int = 0,
) -> None:
    """Send a message.

    Args:
        connection: where to.
        content: what.
        failed: whether it is an error.
        expected: bytes that the other end has room for, who may receive them at once.
    """
    length = content.nbytes if isinstance(content, memoryview) else len(content)
    parts = [_HEADER.pack(failed, length), content, bytes(max(0, expected - length))]
    sent = connection.sendmsg(parts)
    if sent < sum(map(len, parts)):
        connection.sendall(b"".join(parts)[sent:])


def receive(connection: socket.socket) -> bytearray:
    """Wait for a message that is no answer."""
    header = bytearray(_HEADER.size)
    _fill(connection, memoryview(header))
    content = bytearray(_HEADER.unpack(header)[1])
    _fill(connection, memoryview(content))
    return content


def receive_into(connection: socket.socket, room: memoryview) -> bytearray | None:
    """Wait for an answer of a known length, and put it where it is wanted.

    Returns:
        The error, if it is one.

    Raises:
        EOFError: if the other end is gone.
    """
    header = bytearray(_HEADER.size)
    # All in one call: each lets go of Python's lock, and has to wait for it.
    count = connection.recvmsg_into([header, room], 0, socket.MSG_WAITALL)[0]
    _fill(connection, memoryview(header)[count:])
    _fill(connection, room[max(0, count - _HEADER.size) :])
    failed, length = _HEADER.unpack(header)
    if not failed:
        return None
    rest = bytearray(max(0, length - room.nbytes))
    _fill(connection, memoryview(rest))
    return (bytearray(room) + rest)[:length]


def _fill(connection: socket.socket, room: memoryview) -> None:
    """Wait for as many bytes as there is room for.

    Raises:
        EOFError: if the other end is gone.
    """
    while room.nbytes:
        count = connection.recv_into(room, 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        room = room[count:]
