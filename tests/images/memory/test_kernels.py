from __future__ import annotations

from pathlib import Path

import pytest
import torch

from interpreting import run_apart


@pytest.mark.parametrize("interpreted", [True, False], ids=["interpreted", "on the GPU"])
def test_in_a_process_of_its_own(interpreted: bool) -> None:
    pytest.importorskip("triton")
    if not interpreted and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    run_apart(Path(__file__).with_name("kernels.py"), interpreted)
