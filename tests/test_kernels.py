from __future__ import annotations

import pytest
import torch

from foveate import kernels
from interpreting import needs_triton

CPU = torch.device("cpu")


@needs_triton
def test_where_triton_does_not_run_it_says_so_once() -> None:
    kernels.runs_on.cache_clear()
    with pytest.warns(UserWarning, match="slower here than it could be: Triton says"):
        assert not kernels.runs_on(CPU)
    assert not kernels.runs_on(CPU)
    kernels.runs_on.cache_clear()


@needs_triton
def test_kernels_are_on_where_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "interpreted", lambda: True)
    for runs in (False, True):
        monkeypatch.setattr(kernels, "runs_on", lambda device, runs=runs: runs)
        assert kernels.kernels_on(CPU) == runs
    with kernels.plain_pytorch():
        assert not kernels.kernels_on(CPU)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@needs_triton
def test_on_a_gpu() -> None:
    assert kernels.kernels_on(torch.device("cuda"))
