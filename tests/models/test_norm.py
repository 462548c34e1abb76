from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from foveate.kernels import plain_pytorch
from foveate.models import ConvFeature, resnet8
from foveate.models import norm as module
from foveate.models.norm import NormReLU
from interpreting import needs_triton, run_interpreted
from models.norming import compare, images, layer_of, reference_of, relative_error, results

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_triton
def test_the_kernels_by_the_interpreter() -> None:
    run_interpreted(Path(__file__).with_name("interpreted_norm.py"))


@pytest.mark.parametrize("training", [False, True])
def test_on_a_cpu_it_is_torch_s_layer_and_a_relu(training: bool) -> None:
    layer, x = layer_of(3).train(training), images(2, 3, 5, 7)
    reference = copy.deepcopy(reference_of(layer)).float().train(training)
    assert torch.equal(layer(x), F.relu(reference(x)))
    for one, other in zip(layer.buffers(), reference.buffers(), strict=True):
        assert torch.equal(one, other)


def test_its_state_is_that_of_torch_s_layer() -> None:
    layer, other = layer_of(3), nn.BatchNorm2d(3)
    assert list(layer.state_dict()) == list(other.state_dict())
    other.load_state_dict(layer.state_dict())
    again = NormReLU(3)
    again.load_state_dict(other.state_dict())
    found = again.state_dict()
    assert all(torch.equal(found[name], value) for name, value in layer.state_dict().items())


def test_networks_have_the_state_of_before() -> None:
    state = set(ConvFeature(3).state_dict())
    layers = {name.partition(".")[0] for name in state}
    assert layers == {"0", "1", "4", "5", "8", "9"}  # a ReLU and a pool are counted between
    assert {"1.weight", "1.bias", "1.running_mean", "1.num_batches_tracked"} < state
    state = set(resnet8(3).state_dict())
    assert {"blocks.0.norm1.weight", "blocks.2.norm2.running_var", "norm.bias"} < state


def test_plainly_where_the_kernels_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, layer = images(2, 3, 5, 7), NormReLU(3)
    assert not module.fits(x, layer)
    monkeypatch.setattr(module, "kernels_on", lambda device: True)
    assert module.fits(x, layer)
    assert module.fits(x.bfloat16(), layer)
    assert module.fits(x[:1, :, :1, :2].contiguous(memory_format=torch.channels_last), layer)
    for other in [
        x.contiguous(),
        x[..., ::2],
        x.double(),
        x[:1, :, :1, :1],
        x[:0],
        images(2, 4, 5, 7),
        x.to("meta"),
    ]:
        assert not module.fits(other, layer)
    for unfit in [
        NormReLU(3).eval(),
        NormReLU(3, momentum=None),
        NormReLU(3, affine=False),
        NormReLU(3, track_running_stats=False),
        NormReLU(3).bfloat16(),
    ]:
        assert not module.fits(x, unfit)


def test_one_number_for_each_channel_is_refused_as_torch_does() -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        NormReLU(3)(torch.rand(1, 3, 1, 1))


@needs_gpu
@needs_triton
@pytest.mark.parametrize(
    ("dtype", "error", "error_sums"),
    [(torch.float32, 2e-6, 1e-5), (torch.bfloat16, 4e-3, 1e-5), (torch.float16, 5e-4, 1e-5)],
)
@pytest.mark.parametrize(
    "shape",
    [
        (80, 32, 100, 100),
        (5, 32, 13, 13),
        (3, 1, 101, 77),
        (3, 3, 101, 77),
        (7, 40, 33, 31),
        (16, 128, 25, 25),
        (2, 512, 9, 9),
    ],
)
def test_on_a_gpu(
    shape: tuple[int, ...], dtype: torch.dtype, error: float, error_sums: float
) -> None:
    compare(layer_of(shape[1]).cuda(), images(*shape, dtype=dtype).cuda(), error, error_sums)


@needs_gpu
@needs_triton
def test_a_mean_far_from_zero_on_a_gpu() -> None:
    compare(layer_of(32).cuda(), images(8, 32, 50, 50, offset=1000.0).cuda(), 1e-4)


@needs_gpu
@needs_triton
def test_the_same_numbers_every_time_and_from_a_graph() -> None:
    layer, x = layer_of(32).cuda(), images(16, 32, 50, 50).cuda().requires_grad_()
    dy = torch.randn_like(x)
    before = copy.deepcopy(layer.state_dict())
    expected = results(layer, x, dy)
    after = copy.deepcopy(layer.state_dict())
    again = results(layer, x, dy)
    assert all(torch.equal(one, other) for one, other in zip(again, expected, strict=True))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = results(layer, x, dy)
    for tensor in recorded:
        tensor.detach().fill_(torch.nan)
    layer.load_state_dict(before)
    graph.replay()
    assert all(torch.equal(one, other) for one, other in zip(recorded, expected, strict=True))
    for name, value in layer.state_dict().items():
        assert torch.equal(value, after[name]), name
    graph.replay()
    assert layer.num_batches_tracked == after["num_batches_tracked"] + 1


@needs_gpu
@needs_triton
def test_under_autocast_on_a_gpu() -> None:
    network: Any = nn.Sequential(nn.Conv2d(3, 32, 3, bias=False), layer_of(32)).cuda()
    network.to(memory_format=torch.channels_last)
    x, dy = images(8, 3, 52, 52).cuda(), torch.randn(8, 32, 50, 50, device="cuda")
    found = []
    for plainly in (False, True):
        one = copy.deepcopy(network)
        with torch.autocast("cuda", torch.bfloat16):
            if plainly:
                with plain_pytorch():
                    y = one(x)
            else:
                assert module.fits(one[0](x), one[1])
                y = one(x)
        assert y.dtype == torch.bfloat16
        gradients = torch.autograd.grad((y.float() * dy).sum(), list(one.parameters()))
        found.append([y, *gradients, one[1].running_mean, one[1].running_var])
    for i, (mine, torch_s) in enumerate(zip(*found, strict=True)):
        assert mine.dtype == torch_s.dtype
        assert relative_error(mine, torch_s.double()) < 1e-2, f"of result {i}"
