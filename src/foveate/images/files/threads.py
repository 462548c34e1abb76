"""The threads that decode: one pool for each process, made when first needed.

Decoders let go of Python's lock, so that threads decode at the same time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from foveate.errors import InputError

_POOL_SIZE = 32
_BACKGROUND_SIZE = 4
_VARIABLE = "FOVEATE_THREADS"

T = TypeVar("T")
R = TypeVar("R")

_pool: ThreadPoolExecutor | None = None
_background: ThreadPoolExecutor | None = None
_making = threading.Lock()


def set_threads(threads: int | None) -> None:
    """Say how many threads read files, in this process and in those that it starts.

    Args:
        threads: how many; None for as many as torch uses, which is 1 in a loader's workers. The
            environment variable FOVEATE_THREADS says the same.
    """
    if threads is None:
        os.environ.pop(_VARIABLE, None)
    elif threads < 1:
        raise InputError(f"at least 1 thread is needed to read files, but {threads} were asked for")
    else:
        os.environ[_VARIABLE] = str(threads)


def thread_count() -> int:
    """How many threads read files."""
    stated = os.environ.get(_VARIABLE, "")
    if not stated:
        return torch.get_num_threads()
    if not stated.isdecimal() or int(stated) < 1:
        raise InputError(f"{_VARIABLE} must be a whole number of at least 1, but is {stated!r}")
    return int(stated)


def each(function: Callable[[T], object], items: Sequence[T], threads: int) -> None:
    """Call a function on every item, in threads; the first error ends it and is raised.

    The calling thread takes its share, so a call within a call can not wait for itself.
    """
    waiting = deque(items)
    count = min(threads, len(items), _POOL_SIZE) - 1
    helpers = [_executor().submit(_work, function, waiting) for _ in range(count)]
    try:
        _work(function, waiting)
    finally:
        started = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in started]
    for error in errors:
        if error is not None:
            raise error


def _work(function: Callable[[T], object], waiting: deque[T]) -> None:
    while waiting:
        try:
            item = waiting.popleft()
        except IndexError:  # another thread was faster
            return
        try:
            function(item)
        except BaseException:
            waiting.clear()
            raise


def ahead(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R]]:
    """Items and what a function makes of them, in order, a bounded number of them in advance."""
    if threads == 1:
        for item in items:
            yield item, function(item)
        return
    running: deque[tuple[T, Future[R]]] = deque()
    try:
        for item in items:
            running.append((item, _executor().submit(function, item)))
            if len(running) >= 2 * threads:
                first, future = running.popleft()
                yield first, future.result()
        while running:
            first, future = running.popleft()
            yield first, future.result()
    finally:
        for _, future in running:
            future.cancel()


def in_background(function: Callable[[], R]) -> Future[R]:
    """Call a function in another thread; a few at a time, begun in the order they are handed in.

    Those threads are not the ones that decode: a function may wait for them, and for others that
    were handed in before it.
    """
    global _background
    with _making:
        if _background is None:
            name = "foveate-background"
            _background = ThreadPoolExecutor(_BACKGROUND_SIZE, thread_name_prefix=name)
        return _background.submit(function)


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            _pool = ThreadPoolExecutor(_POOL_SIZE, thread_name_prefix="foveate")
        return _pool


def _forget() -> None:
    """Threads do not survive a fork, and their pool does not notice."""
    global _pool, _background, _making
    _pool, _background, _making = None, None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
