"""A stopwatch and a gauge: how long a step takes, and how much memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

EXACT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
"""Makes glibc give freed memory back at once, so that resident memory is what is in use."""

_LEAST = 3
_PATIENCE = {"cpu": 10.0, "cuda": 2.0}
"""Seconds after which a step is not repeated any more, but `_LEAST` times."""
_ENOUGH = {"cpu": 1.0, "cuda": 0.0}
"""Seconds for which short steps are made to warm up, and then repeated, however few are asked for:
the first few on a CPU wait for memory that the others have."""

_IN_A_ROW = 10
"""Short steps between two looks at the clock on a GPU: as in training, the host prepares one while
the device makes another."""
_SHORT = 0.02


def milliseconds_of(
    step: Callable[[], Any], device: torch.device, repeat: int
) -> tuple[float, float]:
    """The median of a step's times, and half the distance between their quartiles."""
    kind = device.type
    short = kind == "cuda" and _timed(step, device, 1) < _SHORT
    steps = _IN_A_ROW if short else 1
    warm = time.perf_counter() + _ENOUGH[kind]
    while time.perf_counter() < warm:
        step()
    times: list[float] = []
    start = time.perf_counter()
    while _wants_more(len(times), repeat, time.perf_counter() - start, kind):
        times.append(1000 * _timed(step, device, steps))
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, (high - low) / 2


def _wants_more(count: int, repeat: int, seconds: float, kind: str) -> bool:
    if count < min(repeat, _LEAST):
        return True
    return seconds < _PATIENCE[kind] and (count < repeat or seconds < _ENOUGH[kind])


def megabytes_of(step: Callable[[], Any], device: torch.device) -> float:
    """The most memory that a step takes."""
    before = _memory_in_use(device)
    for _ in range(3 if device.type == "cuda" else 1):
        step()
    return _memory_at_most(device) - before


def _timed(step: Callable[[], Any], device: torch.device, steps: int) -> float:
    """Seconds of a step, one among so many in a row."""
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    if on_gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def _memory_in_use(device: torch.device) -> float:
    """Megabytes, and from here on the most of them is watched."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 2**20
    peak = Path("/proc/self/clear_refs")
    if peak.exists():
        peak.write_text("5")
    return _resident("VmRSS")


def _memory_at_most(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() / 2**20
    return _resident("VmHWM")


def _resident(field: str) -> float:
    """A line of this process's status in megabytes; NaN where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024
