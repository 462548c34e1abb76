"""Messages between processes arrive whole, errors and answers of any length alike."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from foveate.images.files.messages import receive, receive_into, send

LARGE = 2**22
"""More than a socket holds, so that whoever sends waits for whoever receives."""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def in_background(*args: object) -> threading.Thread:
    thread = threading.Thread(target=send, args=args)
    thread.start()
    return thread


@pytest.mark.parametrize("length", [0, 1, 100, LARGE])
def test_a_question(ends: tuple[socket.socket, socket.socket], length: int) -> None:
    content = bytes(range(251)) * (length // 251 + 1)
    sending = in_background(ends[0], content[:length])
    assert receive(ends[1]) == content[:length]
    sending.join()


@pytest.mark.parametrize("length", [0, 1, 100, LARGE])
def test_an_answer_goes_where_it_is_wanted(
    ends: tuple[socket.socket, socket.socket], length: int
) -> None:
    content = memoryview((bytes(range(251)) * (length // 251 + 1))[:length])
    room = bytearray(length)
    for _ in range(2):
        sending = in_background(ends[0], content, False, length)
        assert receive_into(ends[1], memoryview(room)) is None
        assert room == content
        sending.join()


@pytest.mark.parametrize("room", [0, 5, 11, 12, 13, LARGE])
def test_an_error_may_be_shorter_or_longer_than_the_answer(
    ends: tuple[socket.socket, socket.socket], room: int
) -> None:
    for content in (b"what failed!", b"and again..."):
        sending = in_background(ends[0], content, True, room)
        assert receive_into(ends[1], memoryview(bytearray(room))) == bytearray(content)
        sending.join()


@pytest.mark.parametrize("sent", [b"", b"1234", b"1234567890"])
def test_the_end_is_noticed(ends: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    ends[0].sendall(sent)
    ends[0].close()
    with pytest.raises(EOFError):
        receive_into(ends[1], memoryview(bytearray(100)))
