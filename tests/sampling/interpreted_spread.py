"""`spread`'s kernel in the interpreter; run by test_spread_kernel.py."""

from __future__ import annotations

import pytest
import torch

from sampling.spreading import CASES, compare


@pytest.mark.parametrize(("cells", "n", "sharpness"), CASES)
def test_the_kernel_draws_what_the_reference_draws(cells: int, n: int, sharpness: float) -> None:
    compare(cells, n, sharpness, torch.device("cpu"))
