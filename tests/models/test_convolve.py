from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from foveate.models import convolve as module
from foveate.models.convolve import Activation, convolve, convolve_plainly
from interpreting import needs_triton, run_interpreted
from models.convolving import chain, compare, results

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_triton
def test_the_kernels_by_the_interpreter() -> None:
    run_interpreted(Path(__file__).with_name("interpreted.py"))


def test_plainly_where_the_kernels_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "kernels_on", lambda device: True)
    fitting = torch.rand(1, 3, 8, 9)
    assert module.fits(fitting, [nn.Conv2d(3, 8, 3)])
    for layer in [
        nn.Conv2d(3, 8, 5),
        nn.Conv2d(3, 8, 3, stride=2),
        nn.Conv2d(3, 8, 3, dilation=2),
        nn.Conv2d(3, 3, 3, groups=3),
        nn.Conv2d(3, 8, 3, padding=2),
        nn.Conv2d(3, 8, 3, padding="same"),
        nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(3, 33, 3),
        nn.Identity(),
    ]:
        assert not module.fits(fitting, [layer])
        assert torch.equal(convolve(fitting, [layer], "relu"), layer(fitting))
    assert not module.fits(fitting.double(), [nn.Conv2d(3, 8, 3).double()])
    assert not module.fits(fitting[..., :2, :], [nn.Conv2d(3, 8, 3)])
    assert not module.fits(fitting[:0], [nn.Conv2d(3, 8, 3)])
    with torch.autocast("cpu"):
        assert not module.fits(fitting, [nn.Conv2d(3, 8, 3)])
    heard = nn.Conv2d(3, 8, 3)
    heard.register_forward_hook(lambda *_: None)
    assert not module.fits(fitting, [heard])


def test_plainly_is_the_layers_one_after_the_other() -> None:
    first, second = chain((3, 4, 2), 1, bias=True)
    x = torch.rand(1, 3, 8, 9)
    assert torch.equal(convolve_plainly(x, [first, second], "tanh"), second(first(x).tanh()))
    assert torch.equal(convolve_plainly(x, [first, second], "relu"), second(first(x).relu()))


@needs_gpu
@needs_triton
@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize(
    ("channels", "padding", "activation", "size"),
    [
        ((3, 8, 16, 32, 1), 0, "relu", (288, 384)),
        ((1, 16, 16, 16, 1), 1, "tanh", (179, 181)),
        ((3, 8, 8, 1), 1, "tanh", (100, 100)),
        ((3, 5, 32, 7, 2), 1, "relu", (37, 51)),
    ],
)
def test_on_a_gpu(
    channels: tuple[int, ...],
    padding: int,
    activation: Activation,
    size: tuple[int, int],
    tf32: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    layers = chain(channels, padding, bias=True).cuda()
    x = torch.rand(4, channels[0], *size, device="cuda")
    # A unit that is 0 but for rounding learns in one of the two only, and there are a few of those.
    gradient = (1e-1 if tf32 else 2e-3) if activation == "relu" else (3e-3 if tf32 else 1e-5)
    compare(x, layers, activation, 1e-3 if tf32 else 1e-6, gradient)


@needs_gpu
@needs_triton
def test_the_same_numbers_every_time_and_from_a_graph() -> None:
    layers = chain((3, 8, 16, 32, 1), 0, bias=True).cuda()
    x = torch.rand(4, 3, 96, 128, device="cuda")
    weight = torch.randn(4, 1, 88, 120, device="cuda")
    expected = results(x, layers, "relu", weight, plainly=False)
    again = results(x, layers, "relu", weight, plainly=False)
    assert all(torch.equal(one, other) for one, other in zip(again, expected, strict=True))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = results(x, layers, "relu", weight, plainly=False)
    for tensor in recorded:
        tensor.detach().fill_(torch.nan)
    graph.replay()
    assert all(torch.equal(one, other) for one, other in zip(recorded, expected, strict=True))
