"""Memory that a step frees is kept for the next.

What glibc gives back to the system after a step, the next asks for again, and pays for each page of
it: in attention sampling on a CPU, eight thousand page faults and a tenth of the time.
"""

from __future__ import annotations

import ctypes
import os
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The names that glibc's `mallopt` has for them."""
_KEPT = 2**28
"""Bytes at the end of the heap that may lie idle."""
_LARGEST = 2**25
"""Bytes of an allocation that the heap has room for; glibc goes as far by itself, in time."""


def keep_freed_memory() -> bool:
    """Have the C library keep some of what is freed, and say whether it does.

    It has no say where somebody has set how memory is allocated (`MALLOC_...`, `GLIBC_TUNABLES`),
    and on systems without glibc.
    """
    stated = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if stated or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _KEPT))
