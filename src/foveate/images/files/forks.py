"""A process is not forked in the middle of a read.

The libraries that read files hold locks of their own. If another thread held one at the moment of
a fork, it would stay locked in the child for good, and a loader's worker would wait for ever. So a
fork waits until no thread is reading, and reads that begin meanwhile wait for the fork.
"""

from __future__ import annotations

import os
import threading

_PATIENCE = 10.0
"""Seconds that a fork waits at most: a server may never answer."""


class Undisturbed:
    """A section in which no other thread forks; sections may be nested."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._change = threading.Condition(threading.Lock())
        self._inside: dict[int, int] = {}
        self._forking = False

    def __enter__(self) -> None:
        here = threading.get_ident()
        with self._change:
            while self._forking and here not in self._inside:
                self._change.wait()
            self._inside[here] = self._inside.get(here, 0) + 1

    def __exit__(self, *exception: object) -> None:
        here = threading.get_ident()
        with self._change:
            self._inside[here] -= 1
            if not self._inside[here]:
                del self._inside[here]
            if self._forking:
                self._change.notify_all()

    def before_fork(self) -> None:
        """Wait for the others, and keep them waiting."""
        self._change.acquire()
        self._forking = True
        here = {threading.get_ident()}
        self._change.wait_for(lambda: set(self._inside) <= here, _PATIENCE)

    def after_fork(self) -> None:
        """Let the others go on."""
        self._forking = False
        self._change.notify_all()
        self._change.release()

    def after_fork_in_child(self) -> None:
        """Start anew: the others are not here."""
        self._start()


UNDISTURBED = Undisturbed()
"""Held by whoever opens or decodes."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=UNDISTURBED.before_fork,
        after_in_parent=UNDISTURBED.after_fork,
        after_in_child=UNDISTURBED.after_fork_in_child,
    )
