from __future__ import annotations

from pathlib import Path

import pytest
import torch

from interpreting import needs_triton, run_interpreted
from sampling.spreading import CASES, compare


@needs_triton
def test_the_kernel_by_the_interpreter() -> None:
    run_interpreted(Path(__file__).with_name("interpreted_spread.py"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("cells", "n", "sharpness"), [*CASES, (32400, 10, 4.0), (32400, 64, 1.0)])
def test_the_kernel_on_a_gpu(cells: int, n: int, sharpness: float) -> None:
    compare(cells, n, sharpness, torch.device("cuda"))
