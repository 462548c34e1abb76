"""Memory that processes share."""

from __future__ import annotations

import os

import pytest

from foveate.images.files.desk import Desk

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its handle is inherited")


def test_what_one_process_writes_another_sees() -> None:
    desk = Desk()
    with desk.room(6) as start:
        child = os.fork()
        if child == 0:
            Desk(desk.handle).view(start, (2, 3))[...] = [[1, 2, 3], [4, 5, 6]]
            os._exit(0)
        os.waitpid(child, 0)
        assert desk.view(start, (2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]
    desk.close()


def test_rooms_are_apart_and_used_again() -> None:
    desk = Desk()
    with desk.room(10) as first, desk.room(10) as second:
        assert first != second
        views = [desk.view(start, (10,)) for start in (first, second)]
        for i, view in enumerate(views):
            view[:] = i
        with desk.room(10**6) as large:  # it grows, and what is lent out stays where it is
            desk.view(large, (10**6,))[:] = 9
        assert [view.tolist() for view in views] == [[0] * 10, [1] * 10]
    with desk.room(10) as again:
        assert again in (first, second)
    desk.close()


def test_it_is_there_while_somebody_looks_at_it() -> None:
    desk = Desk()
    with desk.room(4) as start:
        view = desk.view(start, (4,))
    view[:] = 7
    desk.close()
    assert view.tolist() == [7] * 4
