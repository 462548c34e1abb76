"""The model under torch.compile; run by test_compiled.py, without shape checks to trace through."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from foveate import Replacement, Sampler, Sequential, Systematic, TopK, Unordered
from foveate.images import TensorBatch
from foveate.training import Classifier, build_model, settings_for
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


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler looks at it
def test_fused_layers_give_the_same_step() -> None:
    torch.compiler.reset()
    settings = settings_for("digits", n_patches=2, overview_size=(20, 20), patch_size=(16, 16))
    images, labels = TensorBatch(torch.rand(3, 1, 60, 60)), torch.tensor([0, 3, 1])
    steps = []
    for fused in (False, True):
        torch.manual_seed(0)
        model = build_model(settings, 1, 4)
        classifier = Classifier(model, settings, tuple("abcd"), 1)
        if fused:
            classifier.fuse(backend="aot_eager")
        values = classifier.objective(images, labels, torch.Generator().manual_seed(0))
        values["objective"].backward()
        gradients = {name: value.grad for name, value in classifier.named_parameters()}
        steps.append((values["objective"].detach(), gradients))
    torch.testing.assert_close(*steps)
