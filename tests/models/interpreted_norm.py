"""The kernels on the CPU, by Triton's interpreter; run by test_norm.py with it turned on."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveate.kernels import plain_pytorch
from foveate.models import ConvFeature, norm_layer_kernel, resnet8
from foveate.models.norm import NormReLU, fits
from models.norming import compare, images, layer_of, relative_error, results


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several for each program, and more than one way to cut them."""
    monkeypatch.setattr(
        norm_layer_kernel, "SUMS", norm_layer_kernel.Block(1024, warps=1, programs=4)
    )
    monkeypatch.setattr(
        norm_layer_kernel, "WRITES", norm_layer_kernel.Block(512, warps=1, programs=8)
    )


@pytest.mark.parametrize("shape", [(2, 1, 19, 17), (1, 3, 2, 3), (3, 32, 7, 11), (5, 40, 5, 3)])
def test_values_gradients_and_buffers(shape: tuple[int, ...]) -> None:
    compare(layer_of(shape[1]), images(*shape), 1e-6)


@pytest.mark.parametrize("channels", [128, 200])
def test_more_channels_than_a_program_has(channels: int) -> None:
    compare(layer_of(channels), images(2, channels, 5, 7), 1e-6)


def test_tiles_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert norm_layer_kernel.SUMS.tile > 1024
    compare(layer_of(32), images(3, 32, 19, 23), 1e-6)


@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 4e-3), (torch.float16, 5e-4)])
def test_half_precision(dtype: torch.dtype, error: float) -> None:
    compare(layer_of(32), images(3, 32, 7, 11, dtype=dtype), error, error_sums=1e-6)


@pytest.mark.parametrize("channels", [3, 32])
def test_a_mean_far_from_zero(channels: int) -> None:
    # A mean of 1000 has an error of 3e-5, as float32 has it.
    compare(layer_of(channels), images(3, channels, 7, 11, offset=1000.0), 1e-4)


def test_a_first_pixel_far_from_the_others() -> None:
    x = images(3, 8, 17, 11)
    x[0, :, 0, 0] = 300.0
    compare(layer_of(8), x, 1e-5)


def test_a_constant_has_no_variance() -> None:
    layer = NormReLU(8)
    nn.init.constant_(layer.bias, 0.5)
    y = layer(images(2, 8, 5, 5) * 0 + 1000.0)
    assert torch.equal(y, torch.full_like(y, 0.5))
    assert layer.running_var is not None
    torch.testing.assert_close(layer.running_var, torch.full((8,), 0.9))


def test_the_same_numbers_every_time() -> None:
    layer, x = layer_of(40), images(3, 40, 7, 11).requires_grad_()
    dy = torch.randn(3, 40, 7, 11)
    first, second = results(layer, x, dy), results(layer, x, dy)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_gradient_of_any_layout() -> None:
    layer, x = layer_of(8), images(2, 8, 5, 7).requires_grad_()
    dy = torch.randn(2, 8, 1, 1).expand(2, 8, 5, 7)
    expected = results(layer, x, dy.contiguous(memory_format=torch.channels_last))
    for other in (dy, dy.contiguous()):
        found = results(layer, x, other)
        assert all(torch.equal(one, same) for one, same in zip(found, expected, strict=True))


def test_the_input_alone_is_kept() -> None:
    def kept(layer: NormReLU) -> list[Tensor]:
        tensors: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            tensors.append(tensor)
            return tensor

        x = images(2, 8, 5, 7).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept):
            layer(x)
        return [tensor for tensor in tensors if tensor.numel() == x.numel()]

    assert len(kept(layer_of(8))) == 1
    with plain_pytorch():
        assert len(kept(layer_of(8))) == 2


def test_nothing_is_kept_where_nobody_learns() -> None:
    layer, x = layer_of(8), images(2, 8, 5, 7)
    with torch.no_grad():
        assert layer(x).grad_fn is None
    assert layer.num_batches_tracked == 1


def test_no_number_passes_for_another() -> None:
    x = images(2, 3, 5, 7)
    x[0, 1, 2, 3] = torch.nan
    layer = layer_of(3)
    found = layer(x).isnan()
    with plain_pytorch():
        assert torch.equal(found, layer(x).isnan())
    assert found[:, 1].all()
    assert not found[:, ::2].any()


def test_there_is_no_second_derivative() -> None:
    x, weight = images(2, 3, 5, 7).requires_grad_(), torch.rand(2, 3, 5, 7, requires_grad=True)
    (gradient,) = torch.autograd.grad((layer_of(3)(x) * weight).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_under_autocast() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3), layer_of(8)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.autocast("cpu", torch.bfloat16):
        assert fits(network[0](images(2, 3, 7, 9)), network[1])
        y = network(images(2, 3, 7, 9))
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert all(one.grad.dtype == torch.float32 for one in network.parameters())


@pytest.mark.parametrize(
    ("build", "layers"), [(lambda: resnet8(3, 8), 7), (lambda: ConvFeature(3, (4, 8, 8)), 3)]
)
def test_the_networks_use_it(
    build: Callable[[], nn.Module], layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = build().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    plain = copy.deepcopy(network)
    x, weight = images(4, 3, 24, 20), torch.randn(4, 8)
    calls: list[Tensor] = []
    forward = norm_layer_kernel.forward
    monkeypatch.setattr(
        norm_layer_kernel,
        "forward",
        lambda *arguments: calls.append(arguments[0]) or forward(*arguments),  # type: ignore[func-returns-value]
    )
    found = network(x)
    (found * weight).sum().backward()
    assert len(calls) == layers
    with plain_pytorch():
        expected = plain(x)
        (expected * weight).sum().backward()
    assert len(calls) == layers
    assert relative_error(found, expected) < 1e-5
    for one, other in zip(network.parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert relative_error(one.grad, other.grad) < 1e-3
    for (name, one), other in zip(network.named_buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(one, other, msg=name)

    # Where nothing is trained, torch's layer is used, with what was learned here.
    network.eval()
    found = network(x)
    assert len(calls) == layers
    with plain_pytorch():
        assert torch.equal(network(x), found)
