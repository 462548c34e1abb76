"""`spread` by its kernel and by PyTorch, side by side."""

from __future__ import annotations

import itertools

import torch

from foveate.kernels import kernels_on
from foveate.sampling.strata import spread, spread_plainly

CASES = [
    case
    for case in itertools.product((3, 36, 1100), (1, 2, 10), (0.1, 4.0, 40.0))
    if case[1] < case[0]
]


def compare(cells: int, n: int, sharpness: float, device: torch.device) -> None:
    """Draw the same cells with the same weights, but for rounding."""
    assert kernels_on(device)
    generator = torch.Generator().manual_seed(cells + n)
    logits = sharpness * torch.randn(4, cells, generator=generator, dtype=torch.float64)
    attention = logits.softmax(-1).to(device)
    u = torch.rand(4, 1, generator=generator, dtype=torch.float64).to(device)
    index, weight = spread(attention, n, u)
    index_plain, weight_plain = spread_plainly(attention, n, u)
    assert torch.equal(index, index_plain)
    torch.testing.assert_close(weight, weight_plain, rtol=1e-12, atol=0)
