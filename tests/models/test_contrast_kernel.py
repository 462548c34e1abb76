from __future__ import annotations

from pathlib import Path

import pytest
import torch

from interpreting import needs_triton, run_interpreted
from models.contrasts import check_contrast


@needs_triton
def test_the_kernel_by_the_interpreter() -> None:
    run_interpreted(Path(__file__).with_name("interpreted_contrast.py"))


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("shape", [(16, 3, 288, 384), (32, 1, 180, 180), (1, 3, 7, 5)])
def test_on_a_gpu(shape: tuple[int, int, int, int]) -> None:
    check_contrast(torch.rand(shape, device="cuda"), 3)
