"""Pixels that a device reads where they are: whether a kernel of ours can, and until when it does.

A kernel reads bytes on its device, or in pinned host memory over the bus.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import cache

import torch
from torch import Tensor

from foveate.kernels import interpreted, kernels_on

_log = logging.getLogger(__name__)
_in_use: deque[tuple[torch.cuda.Event, object]] = deque()


def kernels_for(pixels: Tensor, device: torch.device) -> bool:
    """Whether a kernel on a device can read these pixels where they are."""
    if not kernels_on(device) or pixels.dtype != torch.uint8:
        return False
    if interpreted():
        return pixels.device == device
    number = torch.cuda.current_device() if device.index is None else device.index
    device = torch.device("cuda", number)
    if pixels.device.type == "cuda":
        return pixels.device == device and _works(device, pinned=False)
    return pixels.is_pinned() and _works(device, pinned=True)


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
        from foveate.images.memory.gather_kernel import gather_inputs
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
