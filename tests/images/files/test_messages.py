"""Messages between processes arrive whole, whatever their length."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from foveate.images.files.messages import receive, send

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("length", [0, 1, 100, 2**22])  # the last is more than a socket holds
@pytest.mark.parametrize("failed", [False, True])
def test_what_is_sent_is_received(ends: Ends, length: int, failed: bool) -> None:
    content = (bytes(range(251)) * (length // 251 + 1))[:length]
    sending = threading.Thread(target=send, args=(ends[0], content, failed))
    sending.start()
    assert receive(ends[1]) == (failed, bytearray(content))
    sending.join()


@pytest.mark.parametrize("sent", [b"", b"1234", b"\0\0\0\0\0\0\0\0\x091234"])
def test_the_end_is_noticed(ends: Ends, sent: bytes) -> None:
    ends[0].sendall(sent)
    ends[0].close()
    with pytest.raises(EOFError):
        receive(ends[1])
