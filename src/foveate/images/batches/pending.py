"""Tensors that are made in the background: files are read and copied while something else computes.

On a GPU the background has a stream of its own, so that its copies run beside the computation. Two
waits keep them in order, both on the device: the background's work for what had been asked of the
device when it was handed in, and whoever takes the tensor for its last copy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import wait

import torch
from torch import Tensor

from foveate.images.files.threads import in_background


class Pending:
    """A tensor that another thread makes. What is handed in first is begun first.

    Args:
        make: makes it, on `device`.
        device: where it will be.
        waits: whether it is made of what the device still computes; False lets a copy from the
            host begin at once.

    Example:
        >>> pending = Pending(lambda: torch.ones(2) + 1, torch.device("cpu"))
        >>> pending.get()
        tensor([2., 2.])
    """

    def __init__(
        self, make: Callable[[], Tensor], device: torch.device, waits: bool = True
    ) -> None:
        self._make: Callable[[], Tensor] | None = make
        self._stream = _side_stream(device) if device.type == "cuda" else None
        self._before: torch.cuda.Event | None = None
        if self._stream is not None and waits:
            self._before = torch.cuda.current_stream(device).record_event()
        self._future = in_background(self._run)

    def settle(self) -> None:
        """Wait until the other thread is done with it, however that ends."""
        wait([self._future])

    def get(self) -> Tensor:
        """The tensor; waits until it is there, and raises what its making raised."""
        tensor = self._future.result()
        if self._stream is not None:
            here = torch.cuda.current_stream(tensor.device)
            here.wait_event(self._done)
            # Its memory is the background's: it must not be used again before we are done.
            tensor.record_stream(here)
        return tensor

    def _run(self) -> Tensor:
        # Let go of: it may well hold whoever holds this, and much memory would wait for a sweep.
        make, self._make = self._make, None
        assert make is not None
        if self._stream is None:
            return make()
        with torch.cuda.stream(self._stream):
            if self._before is not None:
                self._stream.wait_event(self._before)
            tensor = make()
            self._done = self._stream.record_event()
        return tensor


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
