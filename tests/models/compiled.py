"""The model under torch.compile; run by test_compiled.py, without shape checks to trace through."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from foveate import Replacement, Sampler, Sequential, Systematic, TopK, Unordered
from models.building import photographs, small_model

SAMPLERS = [Systematic(), Unordered(), Sequential(), Replacement(), TopK()]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_compiles_without_a_graph_break(sampler: Sampler, device: torch.device) -> None:
    torch.compiler.reset()
    model, images = small_model(sampler=sampler).to(device), photographs().to(device)
    compiled: Any = torch.compile(model, fullgraph=True, backend="aot_eager")
    compiled(images).logits.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    torch.testing.assert_close(compiled(images).logits, model(images).logits)


def test_lists_compile_too() -> None:
    torch.compiler.reset()
    model, images = small_model().eval(), list(photographs())
    compiled: Any = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(images).logits, model(images).logits)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore::UserWarning")  # the compiler's advice on speed
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_inductor_agrees(mode: str) -> None:
    torch.compiler.reset()
    model, images = small_model().cuda(), photographs().cuda()
    compiled: Any = torch.compile(model, fullgraph=True, mode=mode)
    for _ in range(3):
        model.zero_grad()
        torch.compiler.cudagraph_mark_step_begin()
        compiled(images).logits.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    model.eval()
    torch.compiler.cudagraph_mark_step_begin()
    torch.testing.assert_close(compiled(images).logits, model(images).logits, rtol=1e-3, atol=1e-4)
