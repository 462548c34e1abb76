"""Whether pixels are read by kernels of our own, written in Triton, or by PyTorch.

Results are the same, but for a rounding. A kernel reads bytes on its device, or in pinned host
memory over the bus. `plain_pytorch` turns them off, to compare.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

_log = logging.getLogger(__name__)
_on = ContextVar("kernels", default=True)
_in_use: deque[tuple[torch.cuda.Event, object]] = deque()


def kernels_for(pixels: Tensor, device: torch.device) -> bool:
    """Whether a kernel on a device can read these pixels where they are."""
    if not _on.get() or pixels.dtype != torch.uint8:
        return False
    if os.environ.get("TRITON_INTERPRET") == "1":  # kernels run on the CPU, slowly, for tests
        return pixels.device.type == device.type == "cpu"
    if device.type != "cuda":
        return False
    number = torch.cuda.current_device() if device.index is None else device.index
    device = torch.device("cuda", number)
    if pixels.device.type == "cuda":
        return pixels.device == device and _works(device, pinned=False)
    return pixels.is_pinned() and _works(device, pinned=True)


@contextmanager
def plain_pytorch() -> Iterator[None]:
    """No kernel of our own is used inside.

    Example:
        >>> with plain_pytorch():
        ...     kernels_for(torch.zeros(2, dtype=torch.uint8), torch.device("cpu"))
        False
    """
    before = _on.set(False)
    try:
        yield
    finally:
        _on.reset(before)


def keep_until_read(what: object) -> None:
    """Hold on to something in host memory until the device is through with its work so far.

    PyTorch does not see a kernel's reads, and would give the memory to somebody else.
    """
    if torch.cuda.is_current_stream_capturing():
        return
    while _in_use and _in_use[0][0].query():
        _in_use.popleft()
    event = torch.cuda.Event()
    event.record()
    _in_use.append((event, what))


@cache
def _works(device: torch.device, pinned: bool) -> bool:
    """Whether a kernel compiles on this machine and reads what it should."""
    try:
        from foveate.images.gather_kernel import gather_inputs
    except ImportError:
        return False
    pixels = torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4)
    corners = torch.tensor([[[1, 2]]], device=device)
    try:
        there = pixels.pin_memory() if pinned else pixels.to(device)
        raw, _ = gather_inputs(there, corners, (2, 2))
        works = torch.equal(raw[0, 0].cpu(), pixels[0, :, 1:3, 2:4])
    except Exception as error:  # a compiler or driver that is missing shows in many ways
        _log.warning("kernels are not used on %s, PyTorch is instead: %s", device, error)
        return False
    return works
