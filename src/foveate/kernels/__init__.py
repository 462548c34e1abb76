"""Where kernels of our own, written in Triton, are used, and a switch to do without them.

Each has a reference in PyTorch that gives the same result but for rounding, and that is used
wherever the kernel is not: on a CPU, without Triton, where Triton finds no C compiler, and while
torch.compile traces.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec

import torch

_on = ContextVar("kernels", default=True)


def kernels_on(device: torch.device) -> bool:
    """Whether kernels can be launched on a device.

    Example:
        >>> kernels_on(torch.device("cpu")) and not interpreted()
        False
    """
    if torch.compiler.is_compiling() or not (_on.get() and _installed()):
        return False
    return device.type == ("cpu" if interpreted() else "cuda") and runs_on(device)


@cache
def runs_on(device: torch.device) -> bool:
    """Whether Triton can compile a kernel for a device and run it there; tried once."""
    from foveate.kernels.trial_kernel import run_trial

    try:
        run_trial(device)
    except Exception as error:
        warnings.warn(
            f"training is slower here than it could be: Triton says {error!r}", stacklevel=2
        )
        return False
    return True


@cache
def has_tf32(device: torch.device) -> bool:
    """Whether a GPU's matrix units take TF32 and bfloat16."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0)


def interpreted() -> bool:
    """Whether kernels run on the CPU, slowly, for tests: TRITON_INTERPRET is set to 1."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@contextmanager
def plain_pytorch() -> Iterator[None]:
    """No kernel of our own is used inside.

    Example:
        >>> with plain_pytorch():
        ...     kernels_on(torch.device("cuda"))
        False
    """
    before = _on.set(False)
    try:
        yield
    finally:
        _on.reset(before)


@cache
def _installed() -> bool:
    return find_spec("triton") is not None
