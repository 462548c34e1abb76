"""Silence for the logs of the libraries that read files: what matters of them becomes an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_here = threading.local()


def _heard(record: logging.LogRecord) -> bool:
    """Whether a record was logged outside of `quiet`, by somebody else's use of the library."""
    return not getattr(_here, "quiet", False)


@contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """Drop what this thread logs to these loggers; other threads and later calls are heard."""
    for name in loggers:
        logging.getLogger(name).addFilter(_heard)  # once, however often it is asked for
    before = getattr(_here, "quiet", False)
    _here.quiet = True
    try:
        yield
    finally:
        _here.quiet = before
