from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch


@pytest.mark.parametrize("interpreted", [True, False], ids=["interpreted", "on the GPU"])
def test_in_a_process_of_its_own(interpreted: bool) -> None:
    """Triton decides when it is imported whether it runs kernels on the CPU."""
    pytest.importorskip("triton")
    if not interpreted and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    tests = Path(__file__).with_name("kernels.py")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        env=os.environ | {"TRITON_INTERPRET": "1" if interpreted else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
