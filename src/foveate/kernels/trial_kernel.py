"""The smallest kernel, to see whether any can run."""

from __future__ import annotations

from typing import no_type_check

import torch
import triton
import triton.language as tl


@triton.jit
@no_type_check
def _increment(numbers):
    """Adds 1 to a number."""
    tl.store(numbers, tl.load(numbers) + 1)


def run_trial(device: torch.device) -> None:
    """Run a kernel on a device; whatever Triton raises is passed on."""
    numbers = torch.zeros(1, device=device)
    with torch.cuda.device_of(numbers):
        _increment[(1,)](numbers, enable_fp_fusion=True)  # Triton 3.9 warns where nobody says
