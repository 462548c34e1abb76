"""How much room there is in memory for a user's images."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE = 0.25
"""Of the machine's memory: training, the system and others want some, too."""
_UNKNOWN = 2**31
"""Bytes that are there on any machine, for systems that do not say more."""
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where Linux says what a container may take."""


def usual_room(processes: int = 1) -> int:
    """Bytes of decoded images that a process keeps in memory unless told otherwise.

    They are a quarter of the machine's memory, or of what a container may take of it: not of what
    is free at the moment, so that a run that goes on does so as it began.

    Args:
        processes: how many on this machine keep as much.
    """
    stated = [*_machine(), *(limit for path in _LIMITS for limit in _limit(path))]
    return int(_SHARE * min(stated)) // processes if stated else _UNKNOWN // processes


def _machine() -> list[int]:
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        return []
    return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]


def _limit(path: Path) -> list[int]:
    try:
        stated = path.read_text().strip()
    except OSError:
        return []
    return [int(stated)] if stated.isdecimal() else []
