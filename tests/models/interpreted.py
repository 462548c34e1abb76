"""The kernels on the CPU, by Triton's interpreter; run by test_convolve.py with it turned on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from foveate.kernels import plain_pytorch
from foveate.models import convolve as module
from foveate.models import convolve_blocks, layer_kernel
from foveate.models.attention import ConvAttention, PooledAttention
from models.convolving import chain, compare, relative_error, results


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    block_of, wide = convolve_blocks.block_of, convolve_blocks.Block(4, 1024)  # the interpreter's
    monkeypatch.setattr(
        layer_kernel,
        "block_of",
        lambda kernel, *pair: wide if kernel == "total" else block_of(kernel, *pair),
    )
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(
    ("channels", "activation", "bias"),
    [
        ((1, 8, 1), "relu", True),
        ((3, 8, 16), "tanh", True),
        ((8, 16, 1), "relu", False),
        ((16, 32, 1), "tanh", True),
        ((3, 5, 7), "relu", True),
    ],
)
def test_values_and_gradients(
    channels: tuple[int, ...], activation: module.Activation, bias: bool, padding: int
) -> None:
    layers = chain(channels, padding, bias)
    compare(torch.randn(2, channels[0], 7, 10), layers, activation, 2e-6)


def test_a_layer_alone() -> None:
    compare(torch.randn(1, 16, 7, 10), chain((16, 16), 0, bias=True), "relu", 2e-6)


@pytest.mark.parametrize("apart", [False, True])
def test_either_way_back(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    block = convolve_blocks.Block(4, 8, apart=apart)
    for pair in [(8, 16), (16, 1)]:
        monkeypatch.setitem(convolve_blocks.BLOCKS, ("back", *pair), block)
    compare(torch.randn(1, 8, 6, 9), chain((8, 16, 1), 1, bias=True), "relu", 2e-6)


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("of_input", [False, True])
def test_large_inputs(of_input: bool, tf32: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.backends.cudnn.allow_tf32 = tf32
    monkeypatch.setattr(module, "LARGE", 2 * 7 * 10)
    error = 3e-3 if tf32 else 2e-6
    for channels in [(3, 4, 5, 1), (3, 4)]:
        layers = chain(channels, 0, bias=True)
        compare(torch.randn(5, 3, 9, 11), layers, "tanh", error, of_input=of_input)


@pytest.mark.parametrize("large", [0, 2**20])
def test_going_back_twice(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", large)
    layers = chain((3, 4, 5, 1), 0, bias=True)
    y = module.convolve(torch.randn(2, 3, 9, 11), layers, "relu")
    weight = torch.randn_like(y)
    first = torch.autograd.grad(y, list(layers.parameters()), weight, retain_graph=True)
    second = torch.autograd.grad(y, list(layers.parameters()), weight)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("layout", ["channels_last", "turned", "sliced", "repeated"])
def test_any_layout(layout: str) -> None:
    x = torch.randn(2, 3, 8, 20)
    other = {
        "channels_last": x.contiguous(memory_format=torch.channels_last),
        "turned": x.transpose(2, 3).contiguous().transpose(2, 3),
        "sliced": torch.randn(2, 4, 9, 40)[:, 1:, 1:, ::2],
        "repeated": x[:1].expand(2, -1, -1, -1),
    }[layout]
    compare(other, chain((3, 8), 1, bias=True), "relu", 2e-6)


def test_weights_may_have_channels_together() -> None:
    layers = chain((3, 8, 1), 0, bias=True)
    nn.Module.to(layers, memory_format=torch.channels_last)  # type: ignore[call-overload]
    compare(torch.randn(2, 3, 8, 9), layers, "tanh", 2e-6)


def test_an_input_that_needs_no_gradient() -> None:
    compare(torch.randn(2, 3, 8, 9), chain((3, 8, 1), 0, bias=True), "relu", 2e-6, of_input=False)


def test_tf32_is_rounded_to_the_nearest() -> None:
    torch.backends.cudnn.allow_tf32 = True
    compare(torch.randn(1, 3, 9, 11), chain((3, 8, 1), 0, bias=True), "relu", 1e-3)
    values = torch.rand(4, 1, 8, 8)
    layer = nn.Conv2d(1, 2, 3)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias) if layer.bias is not None else None
    layer.weight.data[:, :, 1, 1] = 1.0
    rounded = module.convolve(values, [layer], "relu")[:, :1]
    expected = values[..., 1:-1, 1:-1]
    assert (rounded - expected).abs().max() > 0
    assert ((rounded - expected) / expected).abs().max() <= 2**-11
    assert abs((rounded - expected).mean()) < 2e-5


@pytest.mark.parametrize("channels", [(3, 8, 4, 1), (3, 8, 16)])
def test_half_the_memory_holds_the_same(channels: tuple[int, ...]) -> None:
    layers, x = chain(channels, 0, bias=True), torch.rand(2, 3, 9, 11)
    weight = torch.randn_like(module.convolve_plainly(x, list(layers), "tanh"))
    x.requires_grad_()
    exact = results(x, layers, "tanh", weight, plainly=False)
    torch.backends.cudnn.allow_tf32 = True
    assert layer_kernel.Layer(0, "tanh", "tanh", "tf32").between == torch.float16
    assert layer_kernel.Layer(0, "tanh", "tanh", "ieee").between == torch.float32
    # Gradients of any size, of which float16 could hold none: powers of two change no bit.
    known: list[Tensor] = []
    for power in (-100, 0, 100):
        scaled = results(x, layers, "tanh", weight * 2.0**power, plainly=False)
        found = [scaled[0], *(gradient * 2.0**-power for gradient in scaled[1:])]
        errors = [relative_error(a, b.double()) for a, b in zip(found, exact, strict=True)]
        assert max(errors) < 1e-3
        known = known or found
        assert all(torch.equal(one, other) for one, other in zip(found, known, strict=True))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # by the interpreter
@pytest.mark.parametrize("value", [0.0, 1e-44, torch.inf, torch.nan])
def test_gradients_that_have_no_scale(value: float) -> None:
    torch.backends.cudnn.allow_tf32 = True
    layers, x = chain((3, 8, 1), 0, bias=True), torch.rand(1, 3, 7, 8)
    weight = torch.full((1, 1, 3, 4), value)
    for gradient in results(x, layers, "tanh", weight, plainly=False)[1:]:
        assert gradient.isfinite().all() == (value < 1)


def test_nothing_is_kept_where_nobody_learns() -> None:
    layers = chain((3, 8, 1), 0, bias=True)
    x = torch.randn(1, 3, 8, 9)
    with torch.no_grad():
        result = module.convolve(x, layers, "relu")
    assert result.grad_fn is None
    assert relative_error(result, module.convolve_plainly(x, list(layers), "relu")) < 2e-6


def test_no_number_passes_for_another() -> None:
    x = torch.randn(1, 1, 8, 8)
    x[0, 0, 4, 4] = torch.nan
    layers = chain((1, 8, 1), 1, bias=True)
    found = module.convolve(x, layers, "relu").isnan()
    assert torch.equal(found, module.convolve_plainly(x, list(layers), "relu").isnan())


@pytest.mark.parametrize("network", [ConvAttention(1, channels=4), PooledAttention(3, (4, 4), 4)])
def test_the_networks_use_it(network: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(1, 1 if isinstance(network, ConvAttention) else 3, 12, 14)
    calls: list[Tensor] = []
    forward = layer_kernel.forward
    monkeypatch.setattr(
        layer_kernel,
        "forward",
        lambda *arguments: calls.append(arguments[0]) or forward(*arguments),  # type: ignore[func-returns-value]
    )
    found = network(x)
    assert len(calls) == 3
    with plain_pytorch():
        assert relative_error(found, network(x)) < 2e-6
